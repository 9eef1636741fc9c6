//! Values that are extreme but possible, in every field: what is written is read back, and no contradiction is found in
//! what agrees.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use settings::Settings;

use crate::load::load;
use crate::model::*;
use crate::{json, sample};

/// Thirty days.
const LONGEST_SECONDS: u32 = 30 * 24 * 3600;

/// Ten years of uptime.
const UPTIME_NS: i64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// A fraction whose digits a reader of JSON gives back exactly.
fn short(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap()
}

/// Writes the result and reads it as `compare` and `plot` do.
fn written_and_loaded(result: &ResultFile) -> Result<ResultFile, TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    json::write(result, &path).unwrap();
    let mut found = load(&[&path]);
    prop_assert!(found.refused.is_empty(), "{:?}", found.refused);
    Ok(found.results.remove(0).result)
}

/// Puts an extreme value of its type into each number of a result.
fn stretch(value: &mut Value, schema: &Value, root: &Value, next: &mut impl FnMut() -> usize) {
    let present = schema["anyOf"].get(0).unwrap_or(schema);
    let pointer = present["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    let definition = pointer.and_then(|path| root.pointer(path)).unwrap_or(present);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                // A case's settings and its flows have limits of their own.
                if name == "schema_version" || name == "config" {
                    continue;
                }
                let of_field = &definition["properties"][name];
                let of_map = &definition["additionalProperties"];
                stretch(field, if of_field.is_null() { of_map } else { of_field }, root, next);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| stretch(item, &definition["items"], root, next));
        }
        Value::Number(_) => {
            let values: &[Value] = &match definition["format"].as_str().expect("a number's format")
            {
                "uint8" => [0, u8::MAX].map(Value::from).to_vec(),
                "uint16" => [0, u16::MAX].map(Value::from).to_vec(),
                "uint32" => [0, 16_384, u32::MAX].map(Value::from).to_vec(),
                "uint64" => [0, (1 << 53) + 1, i64::MAX.unsigned_abs(), 1 << 63, u64::MAX]
                    .map(Value::from)
                    .to_vec(),
                "int64" => [i64::MIN, -UPTIME_NS, 0, UPTIME_NS, i64::MAX].map(Value::from).to_vec(),
                "double" => [0.0, 1e-9, f64::from(LONGEST_SECONDS), 1e22, f64::MAX]
                    .map(Value::from)
                    .to_vec(),
                other => panic!("a number of {other}"),
            };
            *value = values[next() % values.len()].clone();
        }
        _ => {}
    }
}

/// A run of one flow whose figures agree.
#[derive(Debug)]
struct Consistent {
    messages_of_qps: Vec<u64>,
    size_bytes: u32,
    seconds: u32,
    offset_ns: i64,
    counters: Vec<Option<u64>>,
    slowest_ns: u64,
}

impl Consistent {
    fn result(&self) -> ResultFile {
        let seconds = f64::from(self.seconds);
        let size = u64::from(self.size_bytes);
        let (qps, bytes) = (self.messages_of_qps.len(), self.size_bytes.to_string());
        let config = CaseConfig::from(Settings::from([
            ("op", "write"),
            ("qps", &*qps.to_string()),
            ("size", &*bytes),
        ]));
        let messages = self.messages_of_qps.iter().sum::<u64>();
        let mut totals = Totals::in_window(messages, messages * size, 0, seconds);
        totals.gbit_per_s = totals.gbit_per_s.map(short);
        totals.mmsg_per_s = totals.mmsg_per_s.map(short);
        let bytes_of_qps: Vec<f64> =
            self.messages_of_qps.iter().map(|count| (count * size) as f64).collect();
        let fairness = Fairness::new(&bytes_of_qps).map(|fairness| Fairness {
            jain: short(fairness.jain),
            min_share: short(fairness.min_share),
            max_share: short(fairness.max_share),
            ..fairness
        });
        let flow = FlowResult {
            window: sample::window(seconds),
            totals,
            fairness,
            latency_ns: Some(Latency {
                count: 10,
                min: 1,
                mean: short(self.slowest_ns as f64 / 2.0).max(1.0),
                max: self.slowest_ns,
                ..Latency::default()
            }),
            qps: (0..)
                .zip(&self.messages_of_qps)
                .map(|(index, &count)| QpResult {
                    qpn: u32::MAX - index,
                    messages: count,
                    gbit_per_s: gbit_per_s(count * size, seconds).map(short),
                    ..sample::qp(index, count * size)
                })
                .collect(),
            ..FlowResult::new(&config.flows[0])
        };
        let clock = NodeClock { offset_ns: self.offset_ns, uncertainty_ns: 1_000 };
        let counters =
            (0..).zip(&self.counters).map(|(index, count)| (format!("counter{index}"), *count));
        let nodes = vec![
            NodeResult {
                clock: Some(clock),
                counters: Some(counters.collect()),
                workers: vec![WorkerResult {
                    messages,
                    window_seconds: Some(seconds),
                    away_seconds: Some(seconds),
                    cpu_seconds: Some(seconds),
                    polls: u64::MAX,
                    empty_polls: u64::MAX,
                    ..WorkerResult::default()
                }],
                ..NodeResult::named(CLIENT)
            },
            NodeResult { clock: Some(clock), ..NodeResult::named(SERVER) },
        ];
        let run = Run { nodes, ..sample::run(vec![flow]) };
        let case = CaseResult { config, ..sample::case(vec![run]) };
        ResultFile { cases: vec![case], ..sample::mesh::sweep("extreme") }
    }
}

fn consistent() -> impl Strategy<Value = Consistent> {
    // At most 800 Gb/s with messages of 1 byte to 1 GiB.
    let shape =
        (select(vec![1u32, 64, 1 << 30]), 1..=LONGEST_SECONDS, select(vec![1usize, 2, 1_000]));
    let messages_of_shape = shape.prop_flat_map(|(size_bytes, seconds, qps)| {
        let most = 100_000_000_000 / u64::from(size_bytes) * u64::from(seconds) / qps as u64;
        let messages = proptest::collection::vec(0..=most, qps);
        (Just(size_bytes), Just(seconds), messages)
    });
    let counts = [None, Some(0), Some(1 << 53), Some((1 << 63) - 1), Some(u64::MAX)];
    let offsets = prop_oneof![-UPTIME_NS..=UPTIME_NS, Just(i64::MIN), Just(i64::MAX)];
    (
        messages_of_shape,
        offsets,
        proptest::collection::vec(select(counts.to_vec()), 4),
        1..=u64::MAX,
    )
        .prop_map(
            |((size_bytes, seconds, messages_of_qps), offset_ns, counters, slowest_ns)| {
                Consistent { messages_of_qps, size_bytes, seconds, offset_ns, counters, slowest_ns }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_number_that_its_type_holds_is_read_back(choices in proptest::collection::vec(0usize..60, 1..40)) {
        let schema = json::schema().to_value();
        let mut choices = choices.into_iter().cycle();
        for result in [sample::result(), sample::open_loop(), sample::mixed()] {
            let mut value = serde_json::to_value(result).unwrap();
            stretch(&mut value, &schema, &schema, &mut || choices.next().unwrap_or(0));
            let stretched: ResultFile = serde_json::from_value(value).unwrap();
            let mut loaded = written_and_loaded(&stretched)?;
            // Figures that were drawn one by one deny each other.
            loaded.cases.iter_mut().flat_map(|case| &mut case.runs).for_each(|run| run.contradiction = None);
            prop_assert_eq!(loaded, stretched);
        }
    }

    #[test]
    fn long_and_fast_runs_on_machines_that_are_long_up_are_read_back(run in consistent()) {
        let result = run.result();
        // Also without a contradiction.
        prop_assert_eq!(written_and_loaded(&result)?, result);
    }
}

#[test]
fn a_run_of_the_most_qps_is_read_back() {
    let run = Consistent {
        messages_of_qps: vec![1 << 40; 16_384],
        size_bytes: 1,
        seconds: LONGEST_SECONDS,
        offset_ns: UPTIME_NS,
        counters: vec![Some(u64::MAX)],
        slowest_ns: u64::MAX,
    };
    let result = run.result();
    assert_eq!(written_and_loaded(&result).unwrap(), result);
}

/// What the program refused before was the uptime of a host in nanoseconds.
#[test]
fn a_host_that_is_up_for_104_days_has_results() {
    let mut result = sample::result();
    let clock = NodeClock { offset_ns: 9_085_851_706_298_273, uncertainty_ns: 25 };
    result.cases[0].runs[0].nodes[0].clock = Some(clock);
    assert_eq!(written_and_loaded(&result).unwrap().cases[0].runs[0].nodes[0].clock, Some(clock));
}
