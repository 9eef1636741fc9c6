//! The file of histograms: one row for each bucket of a distribution that has samples. Buckets are up to 1 % wide, and
//! those of each QP are left out: at the JSON's resolution a long sweep would make gigabytes.

use std::io::{self, Write};

use hdrhistogram::Histogram;

use super::rows::{KEY, Row, places};
use results::model::{FlowResult, Latency, ResultFile, Run};

const COLUMNS: [&str; 4] = ["kind", "low", "high", "count"];

/// Writes header and rows to a stream.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(KEY.iter().chain(&COLUMNS))?;
    for (flow, observation) in places(result) {
        let key = Row::key(&flow, observation.run)?;
        // Set-up is the run's: its rows are with those of its first flow.
        let run = Some(observation.run).filter(|_| flow.is_first());
        let of_flow = observation.moved.into_iter().flat_map(of_flow);
        let of_set_up = run.into_iter().flat_map(of_set_up);
        for (kind, histogram) in of_flow
            .chain(of_set_up)
            .filter_map(|(kind, histogram)| Some((kind, coarser(&histogram)?)))
        {
            for bucket in histogram.iter_recorded() {
                let value = bucket.value_iterated_to();
                let [low, high, count] = [
                    histogram.lowest_equivalent(value),
                    histogram.highest_equivalent(value),
                    bucket.count_at_value(),
                ]
                .map(|figure| figure.to_string());
                writer.write_record(key.cells().chain([&*kind, &*low, &*high, &*count]))?;
            }
        }
    }
    writer.flush()
}

/// The same samples in buckets up to 1 % wide; `None` where memory for them cannot be had.
fn coarser(histogram: &Histogram<u64>) -> Option<Histogram<u64>> {
    let mut coarser = Histogram::new(2).ok()?;
    for bucket in histogram.iter_recorded() {
        let (value, count) = (bucket.value_iterated_to(), bucket.count_at_value());
        coarser.record_n(value, count).ok()?;
    }
    Some(coarser)
}

/// Kinds carry the unit of `low` and `high`. A distribution that the file does not have, or that is damaged, has no row.
fn of_flow(flow: &FlowResult) -> impl Iterator<Item = (String, Histogram<u64>)> {
    let bandwidth = flow.bandwidth_gbit_per_s.as_ref();
    let kinds = [
        ("latency_ns", times(&flow.latency_ns)),
        ("service_ns", times(&flow.service_ns)),
        ("lateness_ns", times(&flow.lateness_ns)),
        ("notice_ns", times(&flow.notice_ns)),
        ("bandwidth_kbit_per_s", bandwidth.and_then(|it| it.histogram_kbit_per_s().ok())),
    ];
    kinds.into_iter().filter_map(|(kind, histogram)| Some((kind.to_owned(), histogram?)))
}

fn times(latency: &Option<Latency>) -> Option<Histogram<u64>> {
    latency.as_ref()?.histogram().ok()
}

/// Times of set-up, at the end that ran the sweep.
fn of_set_up(run: &Run) -> impl Iterator<Item = (String, Histogram<u64>)> {
    run.connect.iter().flat_map(|connect| {
        let setup = connect.setup_ns.iter().map(|time| ("setup", time));
        let steps = connect.steps.iter().map(|step| (&*step.step, &step.time_ns));
        setup
            .chain(steps)
            .filter_map(|(step, time)| Some((format!("connect_{step}_ns"), time.histogram().ok()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample;

    fn rows(result: &ResultFile) -> Vec<Vec<String>> {
        let text = sample::text(|out| write_to(result, out));
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let header = "id,op,qps,size_bytes,run,flow,from,to,kind,low,high,count";
        assert!(reader.headers().unwrap().iter().eq(header.split(',')));
        reader.deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn buckets_hold_all_samples_and_lie_beside_each_other() {
        let result = sample::result();
        let rows = rows(&result);
        let of = |flow: &str, kind: &str| {
            rows.iter()
                .filter(|row| row[5] == flow && row[8] == kind)
                .map(|row| [9, 10, 11].map(|column| row[column].parse::<u64>().unwrap()))
                .collect::<Vec<_>>()
        };
        let forward = &result.cases[0].runs[0].flows[0];
        let latency = forward.latency_ns.as_ref().unwrap();
        let bandwidth = forward.bandwidth_gbit_per_s.as_ref().unwrap();
        let fastest = (bandwidth.max * 1e6).round() as u64;
        for (kind, count, max) in [
            ("latency_ns", latency.count, latency.max),
            ("bandwidth_kbit_per_s", bandwidth.count, fastest),
        ] {
            let buckets = of("forward", kind);
            assert_eq!(buckets.iter().map(|bucket| bucket[2]).sum::<u64>(), count);
            let is_narrow = |[low, high, count]: &[u64; 3]| {
                (*low..=low + low / 100).contains(high) && *count > 0
            };
            assert!(buckets.iter().all(is_narrow));
            assert!(buckets.windows(2).all(|pair| pair[0][1] < pair[1][0]));
            let [low, high, _] = *buckets.last().unwrap();
            assert!((low..=high).contains(&max), "{max}");
        }
        assert!(!of("reverse", "latency_ns").is_empty());
        assert!(of("reverse", "bandwidth_kbit_per_s").is_empty());
        let key = "send-shared-q2-64KiB send 2 65536 1 forward client server";
        assert_eq!(rows[0][..8].join(" "), key);
    }

    #[test]
    fn an_open_loop_has_three_distributions() {
        let result = sample::open_loop();
        let rows = rows(&result);
        let samples = |id: &str, kind: &str| -> u64 {
            rows.iter()
                .filter(|row| row[0].ends_with(id) && row[8] == kind)
                .map(|row| row[11].parse::<u64>().unwrap())
                .sum()
        };
        let kinds = ["latency_ns", "service_ns", "lateness_ns"];
        let closed = kinds.map(|kind| samples("-Q1", kind));
        assert_eq!(closed, [2_400_000, 0, 0]);
        let open = kinds.map(|kind| samples("-R95%", kind));
        assert_eq!(open, [2_280_000, 2_275_000, 2_275_000]);
    }

    #[test]
    fn set_up_has_the_steps_of_its_own_end() {
        let (config, mut run) = sample::connect();
        let latency = run.flows[0].latency_ns.clone().unwrap();
        let connect = run.connect.as_mut().unwrap();
        connect.setup_ns = Some(latency.clone());
        connect.steps[0].time_ns = latency;
        let mut result = sample::result();
        result.cases.truncate(1);
        (result.cases[0].config, result.cases[0].runs) = (config, vec![run]);
        let mut kinds: Vec<String> = rows(&result).into_iter().map(|row| row[8].clone()).collect();
        kinds.dedup();
        let of_traffic = ["latency_ns", "bandwidth_kbit_per_s"];
        let of_set_up = ["connect_setup_ns", "connect_create_ns"];
        assert_eq!(kinds, [of_traffic, of_set_up].concat());
    }
}
