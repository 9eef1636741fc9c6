//! What the workers of a closed loop report, against figures that were worked out by hand: the comment above a row says how
//! they follow. A device takes the same time for each message, workers are away when the row says, and time is virtual.
//!
//! Times are in microseconds from the opening of a window of 40,000, which opens 10,050 after the first post. So a device
//! that takes 100 is done at -50, 50, 150 … 39,950, 40,050, and who sees that posts the next at once. Nobody is without a
//! look at the CQs for more than 100, unless it is away.

use null_verbs::loopback::{self, ServiceTimes};
use results::model::DoubtKind;
use results::sample::{from_words, rows};
use settings::{Settings, Stop};

use crate::bench::{Bench, LEAD_NS, MS, Over, SetUp, US, constant, recorder_of};
use crate::loopback_node::{Steer, case_of};

/// Flags of each row, before its own.
const USUAL: &str = "op=write size=64 tx-depth=1 rx-depth=64 signal-every=1";

pub const WINDOW_NS: u64 = 40 * MS;

/// The first post is so long before the opening, of which the last 5,000 are the lead of the window's word.
pub const WARM_UP_NS: u64 = 5_050 * US;

/// Columns: flags | time of the device, of `each` QP or of `one` after the other, and how often workers look if they do not look
/// when something happens | threads (the client's first) and when they are away | each client worker's window, and how
/// long it did not look over its start, over its end, and in between | messages of each QP | what the server
/// received, and its window | latencies and how many | doubts.
const TIMED: &str = "
# A worker that is there opens its window at its last look before the edge, -50, and closes it at 39,950. What it sees from 50
# to 39,950 is in it: 400. The latency of what it posts at 39,950 belongs to it too, though it ends behind it: 401.
- | 100 each | - | -50..39950(0,0,0) | 400 | - | 100*401 | -
# A 400th of the window, 100, is not late: away from -40 to 30, it has not looked for 30 over the edge, and missed nothing.
- | 100 each | 0 -40..30 | -50..39950(30,0,0) | 400 | - | 100*401 | -
# Away over the opening: what it finds at 310 may be of before. It takes it, looks again, finds nothing, and opens at 310. It
# posted at 310: 410 to 39,910 are 396. It had last looked at -50: 360 without a look over the edge.
- | 100 each | 0 -30..310 | 310..39910(360,0,0) | 396 | - | 100*397 | -
# Its rate is that of its own window, however short: 1,010 to 39,910.
- | 100 each | 0 -30..910 | 910..39910(960,0,0) | 390 | - | 100*391 | -
# Shorter by 10 % (36,000) is a doubt: 4,110 to 39,910.
- | 100 each | 0 -30..4010 | 4010..39910(4060,0,0) | 359 | - | 100*360 | window length
# Away over the end: the window ends at the last look before, 39,850. What was posted then was done at 39,950, and is seen at
# 40,300: its latency is 450.
- | 100 each | 0 39900..40300 | -50..39850(0,450,0) | 399 | - | 100*399 450*1 | -
# Away in the middle: the device waits. 50 to 19,950 are 200; what was posted then is seen at 20,990; 21,090 to 39,990 are 190.
# 1,040 without a look are more than 1 % of the window.
- | 100 each | 0 20000..20990 | -50..39990(0,0,1040) | 391 | - | 100*391 1040*1 | worker away
# 340 are less. 20,390 to 39,990 are 197.
- | 100 each | 0 20000..20290 | -50..39990(0,0,340) | 398 | - | 100*398 340*1 | -
# 90 without a look are not away.
- | 100 each | 0 20000..20040 | -50..39950(0,0,0) | 400 | - | 100*401 | -
# Away until shortly before: what piled up in 190 may take as long again to come, until 130. So the worker takes what it sees at
# 40 for that, and opens then. 140 to 39,940.
- | 100 each | 0 -240..-60 | 40..39940(190,0,0) | 399 | - | 100*400 | -
# 260 without a look until -290 reach until -30: all has come before the edge. It posted at -290, so that it looks at -90.
- | 100 each | 0 -500..-290 | -90..39910(0,0,0) | 400 | - | 100*401 | -
# Away for all of it: the window opens and closes at the first look, 41,000, and has no length.
- | 100 each | 0 -30..41000 | 41000..41000(41050,41050,0) | 0 | - | 100*1 | window length
# 40 messages pile up, and a look takes 32: the window opens when the second look has left none. All 40 are posted at 389, and
# done at 393, 397 … 545; from then on each has 39 before it. 393 to 39,997 are 9,902.
tx-depth=40 | 4 each | 0 -1..389 | 389..39997(391,0,0) | 9902 | - | 4..156/4 160*9903 | -
# A worker that looks each 150 is late at any edge. At 100 it waits for a look that is soon enough, which never comes, for as
# long as it was away. 400 to 39,850 are 264, and all of its time it was away.
- | 100 each, looks 150 | - | 250..39850(250,150,39600) | 264 | - | 150*265 | worker away
# One that looks each 30 sees each message 120 after its post: at 10, 130 … 39,970. It looks at -20, 10, and 39,970, 40,000.
- | 100 each, looks 30 | - | -20..39970(10,0,0) | 334 | - | 120*335 | -
# Two QPs at one device in turn: each waits for the other. At the end two are on their way.
qps=2 | 100 one | - | -50..39950(0,0,0) | 200 200 | - | 200*402 | -
# Four in a queue.
tx-depth=4 | 100 one | - | -50..39950(0,0,0) | 400 | - | 400*404 | -
qps=3 tx-depth=2 op=read | 100 each | - | -50..39950(0,0,0) | 400 400 400 | - | 200*1206 | -
# Of four messages the last one is signalled: a completion each 400, at -50, 350 … 39,950, with the longest wait of the four.
signal-every=4 tx-depth=4 | 100 each | - | -50..39950(0,0,0) | 400 | - | 400*101 | -
# A second four is behind the first: each waits for both, and two are on their way at the end.
signal-every=4 tx-depth=8 op=fetch-add size=8 | 100 each | - | -50..39950(0,0,0) | 400 | - | 800*102 | -
# Four are posted at once, when all four before are done: at -50, 350 … 39,950.
post-list=4 tx-depth=4 | 100 each | - | -50..39950(0,0,0) | 400 | - | 100*101 200*101 300*101 400*101 | -
no-latency=true | 100 each | - | -50..39950(0,0,0) | 400 | - | none | -
# Each worker has a window of its own. One that is there looks whenever anything happens: at -30, and at 39,950 for the other.
qps=2 workers=2 cq=per-worker | 100 each | 1 -30..310 | -30..39950(0,0,0) 310..39950(360,0,0) | 400 396 | - | 100*798 | -
qps=2 workers=2 cq=shared | 100 each | - | -50..39950(0,0,0) -50..39950(0,0,0) | 400 400 | - | 100*802 | -
# Nothing is posted before the start, at 10,000, and then as ever: done at 10,100 … 39,900. A warm-up in which nothing happens has
# no look either: 5,050 until the window's word, which reach beyond the edge.
start=10ms | 100 each | - | 100..39900(5050,0,0) | 299 | - | 100*300 | -
# The last is posted at 9,950, and done at 10,050.
stop=10ms | 100 each | - | -50..39950(0,0,0) | 101 | - | 100*101 | -
# On until 10,000, and from 20,000 to 30,000: done at 20,100 … 30,000.
on=10ms off=10ms | 100 each | - | -50..39900(0,0,0) | 201 | - | 100*201 | -
# Back at 20,890 it begins then: done at 20,990 … 30,090. It had looked at 19,850.
on=10ms off=10ms | 100 each | 0 19900..20890 | -50..39990(0,0,1040) | 193 | - | 100*193 | worker away
# Away over a pause it goes on: what was done at 10,050 is seen at 20,080, and what follows is done at 20,180 … 30,080.
on=10ms off=10ms | 100 each | 0 9960..20080 | -50..39980(0,0,10130) | 201 | - | 100*200 10130*1 | worker away
# One source for both QPs, with room for one on each.
qps=2 spread=round-robin outstanding=2 on=10ms off=10ms | 100 each | - | -50..39900(0,0,0) | 201 201 | - | 100*402 | -

op=send | 100 each | - | -50..39950(0,0,0) | 400 | 400 in -50..39950 | 100*401 | -
op=write-imm bidirectional=true | 100 each | - | -50..39950(0,0,0) | 400 | 400 in -50..39950 | 100*401 | -
# The receiver alone is away over the end, and over the opening: three have come by 310, and 350 to 39,950 are 397.
op=send | 100 each | 1 39900..40300 | -50..39950(0,0,0) | 400 | 399 in -50..39850 | 100*401 | -
op=send | 100 each | 1 -30..310 | -30..39950(0,0,0) | 400 | 397 in 310..39950 | 100*401 | -
# 540 of 39,980 that the receiver missed are more than 1 %: the two ends did not measure the same.
op=send | 100 each | 1 -30..510 | -30..39950(0,0,0) | 400 | 395 in 510..39950 | 100*401 | edge missed
# There and back takes 200, at -50, 150 … 39,950, and half of that is the latency. Requests come at 50, 250 … 39,850.
op=send ping-pong=true | 100 each | - | -50..39950(0,0,0) | 200 | 200 in -50..39950 | 100*201 | -
op=write ping-pong=true | 100 each | - | -50..39950(0,0,0) | 200 | - | 100*201 | -
# A READ's answer is its completion.
op=read ping-pong=true | 100 each | - | -50..39950(0,0,0) | 400 | - | 100*401 | -
";

/// Columns: flags | time of the device | messages of each QP | of a warm-up | the window, from its first post to the last
/// completion seen | what each QP has completed | received | latencies.
const COUNTED: &str = "
- | 100 each | 10 | - | 0..1000 | 10 | - | 100*10
# What the warm-up posted is done before, and in no figure.
- | 100 each | 10 | 5 | 0..1000 | 10 | - | 100*10
# Ten are two fours and a rest of two, which is posted when the first four are done, behind the second. It has no latency.
signal-every=4 tx-depth=8 | 100 each | 10 | - | 0..1000 | 10 | - | 400*1 800*1
signal-every=4 tx-depth=8 | 100 each | 3 | - | 0..300 | 3 | - | none
# In turn: 100 for the first, and then each waits for the other.
qps=2 | 100 one | 10 | - | 0..2000 | 10 10 | - | 100*1 200*19
op=send | 100 each | 10 | 5 | 0..1000 | 10 | 10 in 0..1000 | 100*10
# The last answer has left at 2,000.
op=send ping-pong=true | 100 each | 10 | 3 | 0..2000 | 10 | 10 in 0..2000 | 100*10
";

/// The rows without comments.
pub fn table<const N: usize>(text: &str) -> impl Iterator<Item = [&str; N]> {
    text.lines().filter(|line| !line.starts_with('#')).flat_map(rows)
}

/// A device of this column.
pub fn set_up(flags: &str, device: &str, seed: u64) -> SetUp {
    let (times, looks) = device.split_once(", looks ").unwrap_or((device, ""));
    let (us, servers) = times.split_once(' ').unwrap();
    let case = case_of(from_words::<Settings>(&format!("{USUAL} {flags}")));
    let serving = constant(us.parse::<u64>().unwrap() * US, servers == "each");
    SetUp {
        pass_ns: looks.parse().ok().map(|pass_us: u64| pass_us * US),
        ..SetUp::new(case, seed, serving)
    }
}

/// The times of a column such as `4..156/4 160*9903 7`, in nanoseconds: the first are 4, 8 … 156.
pub fn times_ns(text: &str) -> Vec<u64> {
    let mut times_ns = Vec::new();
    let number = |digits: &str| digits.parse::<u64>().unwrap();
    for word in text.split(' ').filter(|word| *word != "none") {
        if let Some((first, (last, step))) =
            word.split_once("..").and_then(|(first, rest)| Some((first, rest.split_once('/')?)))
        {
            times_ns.extend((number(first)..=number(last)).step_by(number(step) as usize));
        } else {
            let (us, count) = word.split_once('*').unwrap_or((word, "1"));
            times_ns.extend(vec![number(us); number(count) as usize]);
        }
    }
    times_ns.into_iter().map(|us| us * US).collect()
}

/// Counts as in a column.
pub fn list(counts: &[u64]) -> String {
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// Microseconds from the opening.
fn relative(at_ns: u64, opens_ns: u64) -> i64 {
    (at_ns as i64 - opens_ns as i64) / US as i64
}

/// Fails unless the run's messages and latencies are those of the columns, and bytes and rates follow from them. Returns what is
/// doubted.
fn check(over: Over, opens_ns: u64, columns: [&str; 3], row: &str) -> Vec<DoubtKind> {
    let [messages, received, latencies] = columns;
    assert_eq!(list(&over.rest.client_sums().completed), messages, "{row}");
    if received != "-" {
        let counts = list(&over.rest.server_sums().received);
        let window = over.rest.server.2[0].window_raw.unwrap();
        let [start, end] = [window.0, window.1].map(|at_ns| relative(at_ns, opens_ns));
        assert_eq!(format!("{counts} in {start}..{end}"), received, "{row}");
    }
    // Each worker's messages are divided by its own window.
    let mut rate = 0.0;
    for worker in &over.rest.client.2 {
        let (start_ns, end_ns) = worker.window_raw.unwrap();
        let count: u64 = worker.qps.iter().map(|qp| qp.completed).sum();
        rate += if count == 0 { 0.0 } else { count as f64 / (end_ns - start_ns) as f64 * 1e3 };
    }
    let (mean_bytes, has_pauses) = (over.rest.case.mean_bytes(), over.rest.case.has_on_times());
    let (report, doubts) = over.doubted();
    let sent = report.sent.unwrap();
    let of_row = recorder_of(&times_ns(latencies)).latency();
    assert_eq!(sent.latency_ns, of_row, "{row}");
    let totals = &sent.totals;
    assert_eq!(totals.bytes as f64, totals.messages as f64 * mean_bytes, "{row}");
    let rate_differs_by = (totals.mmsg_per_s.unwrap_or(0.0) - rate).abs();
    // That of a flow with pauses is of the time for which it was on: `pauses`.
    assert!(rate_differs_by <= rate * 1e-9 || has_pauses, "{row}: {rate}");
    assert_eq!(sent.window.doubts, [], "{row}");
    doubts
}

#[test]
fn windows_by_time_have_what_was_worked_out() {
    for row in table(TIMED) {
        let [flags, device, away, windows, messages, received, latencies, doubts] = row;
        let text = row.join(" | ");
        // Whatever the order in which threads look at one instant.
        for seed in 0..3 {
            let mut set_up = set_up(flags, device, seed);
            set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
            let (opens_ns, over) = set_up.run(|bench| {
                let opens_ns = bench.open_window(WARM_UP_NS, WINDOW_NS).opens_raw;
                if let Some((thread, times)) = away.split_once(' ') {
                    let (from, until) = times.split_once("..").unwrap();
                    let [from, until]: [i64; 2] = [from, until].map(|us| us.parse().unwrap());
                    let from_ns = opens_ns.saturating_add_signed(from * US as i64);
                    bench.away(thread.parse().unwrap(), from_ns, (until - from) as u64 * US);
                }
                bench.close_window();
                opens_ns
            });
            let of_workers = over.rest.client.2.iter().map(|worker| {
                let (start, end) = worker.window_raw.unwrap();
                let [start, end] = [start, end].map(|at_ns| relative(at_ns, opens_ns));
                let [before, after] = worker.unattended_raw.map(|ns| ns / US);
                format!("{start}..{end}({before},{after},{})", worker.away_raw / US)
            });
            assert_eq!(of_workers.collect::<Vec<_>>().join(" "), windows, "{text}");
            let found = check(over, opens_ns, [messages, received, latencies], &text);
            let kinds: Vec<&str> = found.iter().map(|kind| kind.name()).collect();
            assert_eq!(kinds.join(", "), doubts.trim_start_matches('-'), "{text}");
        }
    }
}

#[test]
fn counted_runs_have_what_was_worked_out() {
    for row in table(COUNTED) {
        let [flags, device, each, warm_up, window, messages, received, latencies] = row;
        let text = row.join(" | ");
        for seed in 0..3 {
            let mut set_up = set_up(flags, device, seed);
            let each: u64 = each.parse().unwrap();
            set_up.case.set_stop(Stop::MessagesPerQp(each));
            let (outcome, over) =
                set_up.run(|bench: &mut Bench<'_>| bench.run_counted(each, warm_up.parse().ok()));
            outcome.unwrap();
            let (start_ns, end_ns) = over.rest.client.2[0].window_raw.unwrap();
            assert_eq!(format!("0..{}", relative(end_ns, start_ns)), window, "{text}");
            assert_eq!(check(over, start_ns, [messages, received, latencies], &text), [], "{text}");
        }
    }
}

/// Samples each 10,000, at 9,950 … 39,950, just before what is done then is seen. Columns: flags | when the device stands
/// still | messages in each interval of the flow | of each QP | longest stall.
const OVER_TIME: &str = "
# 50 to 9,850 are 99, then 100 each; the last sample is at the end of the window, which the message at 39,950 belongs to.
- | - | 99 100 100 101 | - | 0
qps=2 | - | 198 200 200 202 | 99 100 100 101, 99 100 100 101 | 0
# From 10,000 to 25,000 nothing is done: the message under way is at 25,050, and 49 are seen until 29,850. The one before was
# seen at 9,950; the last look that found nothing is at 24,950.
- | 10000..25000 | 99 1 49 101 | - | 15000
# To 35,000: an interval has none, and 35,050 to 39,950 are 50.
qps=2 workers=2 cq=per-worker | 10000..35000 | 198 2 0 100 | 99 1 0 50, 99 1 0 50 | 25000
";

#[test]
fn throughput_over_time_is_what_was_seen_until_each_sample() {
    for [flags, still, of_flow, of_qps, stall] in table(OVER_TIME) {
        let mut set_up = set_up(flags, "100 each", 1);
        set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
        let ((), over) = set_up.run(|bench| {
            bench.sample_every(10 * MS);
            let opens_ns = bench.now_ns() + WARM_UP_NS + LEAD_NS;
            if let Some((from, until)) = still.split_once("..") {
                let [from, until]: [u64; 2] = [from, until].map(|us| us.parse().unwrap());
                loopback::stand_still(opens_ns + from * US, (until - from) * US);
            }
            bench.measure(WARM_UP_NS, WINDOW_NS);
        });
        let sent = over.report().sent.unwrap();
        let timeline = sent.timeline.unwrap();
        assert_eq!(
            (&*list(&timeline.messages), &timeline.at_seconds[..]),
            (of_flow, &[0.01, 0.02, 0.03, 0.04][..])
        );
        let stall_us = (timeline.longest_stall_seconds.unwrap() * 1e6).round();
        assert_eq!(stall_us.to_string(), stall, "{of_flow}");
        let lines =
            sent.qp_timeline.map(|it| it.messages.iter().map(|qp| list(qp)).collect::<Vec<_>>());
        assert_eq!(lines.map_or("-".to_owned(), |lines| lines.join(", ")), of_qps);
    }
}

/// One of four QPs takes longer for its messages. Columns: its time | its messages, of which the others have 400 | Jain's
/// index | its share of an even part | whether it is named.
const UNEVEN: &str = "
# (3 × 400 + 40)² / (4 × (3 × 400² + 40²)), and 40 × 4 / 1,240.
1000 | 40 | 0.79817 | 0.12903 | yes
# (1,200 + 200)² / (4 × (480,000 + 40,000)); 0.57 of an even part is no less than half.
200 | 200 | 0.94231 | 0.57143 | no
100 | 400 | 1.00000 | 1.00000 | no
";

#[test]
fn a_qp_that_is_served_worse_is_named_with_its_share() {
    for [us, messages, jain, share, is_named] in table(UNEVEN) {
        let mut set_up = set_up("qps=4", "100 each", 1);
        set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
        let ((), over) = set_up.run(|bench| {
            let qpn = bench.pair.client.shared.qp_contexts()[2].qp.qpn();
            loopback::serve_qp(qpn, ServiceTimes::Constant(us.parse::<u64>().unwrap() * US));
            bench.measure(WARM_UP_NS, WINDOW_NS);
        });
        let sent = over.report().sent.unwrap();
        assert_eq!(sent.qps[2].messages.to_string(), messages);
        let fairness = sent.fairness.unwrap();
        let shown = [fairness.jain, fairness.min_share].map(|it| format!("{it:.5}"));
        assert_eq!(shown, [jain, share]);
        let named: Vec<u32> = fairness.starved.iter().map(|qp| qp.index).collect();
        assert_eq!(named, if is_named == "yes" { vec![2] } else { Vec::new() });
    }
}

/// Two QPs of which one sends 64 bytes with each message and the other 4,096: bytes are shared, not messages. 4,160² / (2 ×
/// (64² + 4,096²)), and 2 × 64 / 4,160. None is starved: it got as many messages as the other.
#[test]
fn fairness_is_of_bytes() {
    let mut set_up = set_up("qps=2 size-mix=64:1,4096:1", "100 each", 1);
    set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
    let (_, over) = set_up.run(|bench| bench.measure(WARM_UP_NS, WINDOW_NS));
    let fairness = over.report().sent.unwrap().fairness.unwrap();
    let shown = [fairness.jain, fairness.min_share].map(|it| format!("{it:.5}"));
    assert_eq!(shown, ["0.51562", "0.03077"]);
    assert!(fairness.starved.is_empty());
}
