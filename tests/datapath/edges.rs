//! A worker that is away when a window opens or closes: whatever the run then says, if it counts its rate is the device's.

use results::model::LoadVerdict;
use settings::Stop;

use crate::bench::{LEAD_NS, MS};
use crate::by_hand::{set_up, table};

const WINDOW_NS: u64 = 200 * MS;
const WARM_UP_NS: u64 = 130 * MS;

/// Absences begin so many quarters of their length before an edge: one begins after it, one ends before it.
const QUARTERS: std::ops::RangeInclusive<i64> = -1..=5;

/// The most by which a rate may be off.
const OFF: f64 = 0.01;

/// Columns: flags | the device | threads of which one is away | messages a second | how many of the runs with an absence of 5,
/// of 20 and of 100 ms count.
const FLOWS: &str = "
# Nobody else works: a window that opens later or closes earlier by 20 ms, 10 %, is as good as any. Of 14 absences the two within
# it do not count; of 20 ms the one from the start on neither, which leaves 179.6 ms; of 100 ms none across an edge.
tx-depth=4 | 400 each | 1 | 2500 | 12 11 4
qps=2 workers=2 cq=per-worker tx-depth=4 | 400 one | 2 | 2500 | ? ? ?
op=send tx-depth=4 rx-depth=4 | 400 each | 2 | 2500 | ? ? ?
op=send tx-depth=4 rx-depth=4 bidirectional=true | 400 each | 2 | 2500 | ? ? ?
rate=2000 arrivals=fixed tx-depth=16 | 100 each | 1 | 2000 | ? ? ?
";

#[test]
fn a_run_that_counts_is_right_wherever_a_worker_was_away() {
    for [flags, device, threads, per_second, expected_counts] in table(FLOWS) {
        let truth: f64 = per_second.parse().unwrap();
        let counts = [5, 20, 100].map(|length_ms: u64| {
            let edges = [0, WINDOW_NS].into_iter();
            let places = edges.flat_map(|edge_ns| QUARTERS.map(move |before| (edge_ns, before)));
            let counted = (0..threads.parse().unwrap())
                .flat_map(|thread| places.clone().map(move |place| (thread, place)))
                .filter(|&(thread, (edge_ns, before))| {
                    let mut set_up = set_up(flags, device, 1);
                    set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
                    let length_ns = length_ms * MS;
                    let ((), over) = set_up.run(|bench| {
                        let opens_ns = bench.now_ns() + WARM_UP_NS + LEAD_NS;
                        let from_ns =
                            (opens_ns + edge_ns).saturating_add_signed(-before * length_ns as i64 / 4);
                        bench.away(thread, from_ns, length_ns);
                        bench.measure(WARM_UP_NS, WINDOW_NS);
                    });
                    let (report, doubts) = over.doubted();
                    let sent = report.sent.unwrap();
                    let is_late = sent.load.is_some_and(|it| it.verdict == LoadVerdict::NotKept);
                    let counts = !is_late && !doubts.iter().any(|kind| kind.spoils_rates());
                    let rate = sent.totals.mmsg_per_s.unwrap_or(0.0) * 1e6;
                    assert!(
                        !counts || (rate / truth - 1.0).abs() <= OFF,
                        "{rate} of {truth}: {flags}, thread {thread}, {length_ms} ms, {before} quarters before {edge_ns}"
                    );
                    counts
                });
            counted.count().to_string()
        });
        for (count, expected) in counts.iter().zip(expected_counts.split(' ')) {
            assert!(expected == "?" || count == expected, "{flags}: {counts:?}");
        }
    }
}
