//! Transfers between ends on a network in memory, without a model: many QPs, many senders, marks, losses.
//!
//! - Small posts wait for the program's next poll while others are on their way. They must leave whether it polls or
//!   not.
//! - A thousand QPs: none fails because the others take long, and a timer of one looks at no other.
//! - Deliberate faults of a device: what they befall, and what not; and its limits, at exact instants.
//! - Sixteen senders to one receiver: all data arrive right and no QP fails. Where the links mark, senders are told
//!   and no queue overflows; where they do not, queues lose. The same seed has the same effects.
//! - Requests of one QP take effect in their order: a READ gets what was there before the requests behind it, also if
//!   these change it before it is answered, and what those before it have left.

use softroce::transport::{Operation, QpEvent, SendRequest, State};

use crate::support::end::{End, Plan, pair, post, request};

/// Ends that are connected, of which each has faults of its own.
fn pair_with(plan: &Plan, faults: [&str; 2]) -> (End, End) {
    let [a, b] =
        faults.map(|faults| End::new(&Plan { faults: faults.parse().unwrap(), ..plan.clone() }));
    a.connect(&b);
    b.connect(&a);
    (a, b)
}

const CORKED_QPS: usize = 16;
const MESSAGE_BYTES: usize = 64;

#[test]
fn posts_of_many_calls_and_qps_leave_together() {
    const ROUNDS: usize = 200;
    let plan = Plan { qps: CORKED_QPS, ..Plan::on(1, "delay=2us") };
    let (client, server) = (End::new(&plan), End::new(&plan));
    for (one, other) in [(&client, &server), (&server, &client)] {
        for (qp, peer) in one.qps.iter().zip(&other.qps) {
            // One flow, so that its packets can be in one datagram.
            one.connect_to(qp, other.nic.address(), peer.number(), 5);
        }
    }
    for _ in 0..ROUNDS {
        for qp in 0..CORKED_QPS {
            client.post(qp, server.write_to(0), &[client.sge(0, MESSAGE_BYTES)]);
        }
        client.succeeds(CORKED_QPS);
    }
    // The first post of a round leaves alone, the others with the poll.
    client.counts("datagrams_sent", 2 * ROUNDS as u64);
}

const CROWD_QPS: usize = 1024;
const LIST: usize = 32;
const CROWD_BYTES: usize = 64;

fn receive(end: &End, qp: usize) {
    let sge = end.sge(qp * CROWD_BYTES, CROWD_BYTES);
    end.qps[qp].post_recv(qp as u64, &[sge]).unwrap();
}

fn post_list(client: &End, qp: usize) {
    let sge = [client.sge(qp * CROWD_BYTES, CROWD_BYTES)];
    let mut list = [request(qp as u64, Operation::Send, &sge); LIST];
    let unsignaled = &mut list[..LIST - 1];
    unsignaled.iter_mut().for_each(|it| it.signaled = false);
    post(&client.qps[qp], &list).unwrap();
}

#[test]
fn lists_of_a_thousand_qps_all_arrive() {
    let (client, server) = pair(&Plan {
        qps: CROWD_QPS,
        memory_bytes: CROWD_QPS * CROWD_BYTES,
        send_wrs: LIST as u32,
        recv_wrs: 2 * LIST as u32,
        ..Plan::on(1, "delay=2us")
    });
    for qp in 0..CROWD_QPS {
        (0..2 * LIST).for_each(|_| receive(&server, qp));
    }
    for _ in 0..2 {
        (0..CROWD_QPS).for_each(|qp| post_list(&client, qp));
        client.succeeds(CROWD_QPS);
    }
    server.succeeds(2 * CROWD_QPS * LIST);
}

/// Fifteen packets.
const FAULTY_BYTES: usize = 60 << 10;

#[test]
fn faults_of_both_directions_befall_packets_and_change_no_data() {
    let faults = "seed=5,drop=5%,duplicate=2%,reorder=2%,corrupt=1%";
    let (mut from, to) = pair_with(&Plan::on(1, ""), [faults, ""]);
    from.fill();
    from.run(30, 4, FAULTY_BYTES, |at| (to.write_to(at * FAULTY_BYTES), at * FAULTY_BYTES));
    let (sent, rest) = (30 * FAULTY_BYTES, 30 * FAULTY_BYTES..60 * FAULTY_BYTES);
    from.memory[rest.clone()].fill(0);
    from.run(30, 4, FAULTY_BYTES, |at| (to.read_from(at * FAULTY_BYTES), sent + at * FAULTY_BYTES));
    assert!(to.memory[..sent] == from.memory[..sent]);
    assert!(to.memory[..sent] == from.memory[rest]);
    while from.plan.world.as_ref().unwrap().step() {}
    for kind in ["dropped", "duplicated", "reordered", "corrupted"] {
        for direction in ["tx", "rx"] {
            let count = from.counter(&format!("fault_{direction}_{kind}"));
            assert!(count > 0, "{direction} {kind}");
        }
    }
    to.counts("packets_received", from.counter("packets_sent"));
    let damaged = from.counter("fault_tx_corrupted");
    let twice = from.counter("fault_tx_duplicated");
    assert!((damaged..=damaged + twice).contains(&to.counter("bad_icrc")));
}

/// Ends on a network that takes no time, of which the first has these faults.
fn limited(faults: &str, qps: usize) -> (End, End) {
    pair_with(&Plan { qps, ..Plan::on(1, "") }, [faults, ""])
}

#[test]
fn a_context_that_is_not_in_the_cache_costs_its_time() {
    // The third QP takes the place of the first, and the first that of the second.
    const ORDER: [usize; 6] = [0, 1, 2, 0, 2, 0];
    // How long the WRITE of each QP takes, of which one begins when the one before has ended, and contexts that were missing.
    for (faults, takes_us, misses) in [
        ("tx.qp_cache=2:2us", [2, 2, 2, 2, 0, 0], 4),
        ("tx.qp_cache=3:2us", [2, 2, 2, 0, 0, 0], 3),
        // So are the contexts for the answers.
        ("qp_cache=2:2us", [4, 4, 4, 4, 0, 0], 8),
        ("tx.pps=1M,tx.qp_cache=2:2us", [3, 3, 3, 3, 1, 1], 4),
    ] {
        let (from, to) = limited(faults, 3);
        let world = from.plan.world.as_ref().unwrap();
        let took_us = ORDER.map(|qp| {
            let start_ns = world.now_ns();
            from.post(qp, to.write_to(0), &[from.sge(0, 64)]);
            from.succeeds(1);
            (world.now_ns() - start_ns) / 1000
        });
        assert_eq!(took_us, takes_us, "{faults}");
        from.counts("qp_cache_misses", misses);
    }
}

#[test]
fn a_slow_path_has_some_flows_and_leaves_the_others_alone() {
    const FLOWS: usize = 16;
    // 992 bits take 992 µs. Each flow has one of both paths.
    let slow_flows = ["slow_path=0/2:1M", "slow_path=1/2:1M"].map(|faults| {
        let (from, to) = limited(faults, FLOWS);
        let world = from.plan.world.as_ref().unwrap();
        let start_ns = world.now_ns();
        for qp in 0..FLOWS {
            from.post(qp, to.write_to(0), &[from.sge(0, 64)]);
        }
        let took_ns = [0; FLOWS].map(|_| {
            from.succeeds(1);
            world.now_ns() - start_ns
        });
        let slow_ns = took_ns.into_iter().filter(|ns| *ns > 0);
        assert!(
            slow_ns.clone().eq((1..=slow_ns.clone().count() as u64).map(|turn| turn * 992_000))
        );
        slow_ns.count()
    });
    assert!(slow_flows.iter().all(|flows| *flows > 0), "{slow_flows:?}");
    assert_eq!(slow_flows.iter().sum::<usize>(), FLOWS);
}

#[test]
fn sprayed_packets_overtake_each_other_and_all_data_arrive() {
    let (mut from, to) = limited("tx.paths=4~30us", 1);
    from.fill();
    from.run(1, 1, FAULTY_BYTES, |_| (to.write_to(0), 0));
    assert!(to.memory[..FAULTY_BYTES] == from.memory[..FAULTY_BYTES]);
    assert!(to.counter("out_of_sequence") > 0 && from.counter("fault_tx_dropped") == 0);
}

const SENDERS: usize = 16;
const MESSAGES: usize = 48;
const INCAST_BYTES: usize = 64 << 10;

struct Incast {
    senders: Vec<End>,
    target: End,
    ended_ns: u64,
    /// Packets that the link to the target and its receive buffer lost.
    lost: (u64, u64),
}

/// All senders at once write all of their memory, or the target reads it.
fn incast(seed: u64, link: &str, buffer_bytes: Option<u32>, reads: bool) -> Incast {
    let plan = Plan {
        memory_bytes: MESSAGES * INCAST_BYTES,
        receive_buffer_bytes: buffer_bytes,
        ..Plan::on(seed, link)
    };
    let mut senders: Vec<End> = (0..SENDERS).map(|_| End::new(&plan)).collect();
    let target = End::new(&Plan {
        qps: SENDERS,
        memory_bytes: SENDERS * MESSAGES * INCAST_BYTES,
        ..plan.clone()
    });
    let mut numbers = fastrand::Rng::with_seed(seed);
    for (sender, qp) in senders.iter_mut().zip(&target.qps) {
        numbers.fill(&mut sender.memory);
        sender.connect_qps(&sender.qps[0], &target, qp);
        target.connect_qps(qp, sender, &sender.qps[0]);
    }
    for message in 0..MESSAGES {
        for (number, sender) in senders.iter().enumerate() {
            let (here, there) =
                (message * INCAST_BYTES, (number * MESSAGES + message) * INCAST_BYTES);
            if reads {
                target.post(number, sender.read_from(here), &[target.sge(there, INCAST_BYTES)]);
            } else {
                sender.post(0, target.write_to(there), &[sender.sge(here, INCAST_BYTES)]);
            }
        }
    }
    if reads {
        target.succeeds(SENDERS * MESSAGES);
    } else {
        senders.iter().for_each(|sender| sender.succeeds(MESSAGES));
    }
    let world = plan.world.as_ref().unwrap();
    let ended_ns = world.now_ns();
    while world.step() {}
    for end in senders.iter().chain([&target]) {
        assert!(end.qps.iter().all(|qp| qp.state() == State::Rts));
        assert_eq!(*end.events.lock().unwrap(), [] as [QpEvent; 0]);
        end.counts("bad_icrc", 0);
    }
    let places = target.memory.chunks(MESSAGES * INCAST_BYTES);
    assert!(senders.iter().map(|it| &it.memory[..]).eq(places));
    Incast { lost: world.fabric().overflowed(target.nic.address()), senders, target, ended_ns }
}

impl Incast {
    fn sum(&self, name: &str) -> u64 {
        self.senders.iter().map(|it| it.counter(name)).sum()
    }
}

/// Its queue holds a quarter of what all senders send.
const LINK: &str = "rate=10G,delay=2us,queue=10ms";

#[test]
fn with_marks_senders_are_told_and_nothing_is_lost() {
    for reads in [false, true] {
        let run = incast(1, &format!("{LINK},mark=50us"), None, reads);
        assert_eq!(run.lost, (0, 0));
        for nothing in ["go_backs", "timeouts"] {
            assert_eq!(run.sum(nothing) + run.target.counter(nothing), 0);
        }
        assert!(run.target.counter("np_ecn_marked_roce_packets") > 0);
        assert_eq!(run.sum("rp_cnp_handled"), run.target.counter("np_cnp_sent"));
        assert!(run.senders.iter().all(|end| end.counter("rp_cnp_handled") > 0));
    }
}

#[test]
fn without_marks_queues_and_buffers_lose_and_all_data_arrive() {
    for (link, buffer_bytes) in [(LINK, None), ("delay=2us", Some(212_992))] {
        let run = incast(1, link, buffer_bytes, false);
        let (in_queue, in_buffer) = run.lost;
        assert_eq!((in_queue > 0, in_buffer > 0), (buffer_bytes.is_none(), buffer_bytes.is_some()));
        for nothing in ["np_ecn_marked_roce_packets", "np_cnp_sent"] {
            run.target.counts(nothing, 0);
        }
        assert_eq!(run.sum("rp_cnp_handled") + run.sum("rate_waits"), 0);
        assert!(run.sum("go_backs") > 0);
    }
}

#[test]
fn the_same_seed_runs_the_same_way() {
    let link = "rate=10G,delay=2us~1us,queue=3ms,mark=300us,drop=0.1%";
    let outcome = |seed| {
        let run = incast(seed, link, None, false);
        let counters: Vec<_> =
            run.senders.iter().chain([&run.target]).map(|it| it.nic.counters()).collect();
        (run.ended_ns, run.lost, counters)
    };
    assert_eq!(outcome(5), outcome(5));
    assert_ne!(outcome(5), outcome(6));
}

/// At the requester the bytes of the other request, or its result, and those that are read.
const GIVEN: usize = 0;
const READ: usize = 1 << 20;
/// Also more than one READ request, and more than is answered at once.
const SIZES: [usize; 5] = [8, 4096, 20_000, 60_000, 1 << 20];
const OLD: u8 = 1;
const NEW: u8 = 2;

/// What changes all bytes, or the first eight if it is an atomic.
fn changes(to: &End) -> [Operation; 4] {
    let (address, rkey) = (to.address(0), to.key);
    let add = u64::from_ne_bytes([NEW - OLD; 8]);
    let [compare, swap] = [OLD, NEW].map(|byte| u64::from_ne_bytes([byte; 8]));
    [
        to.write_to(0),
        Operation::Send,
        Operation::FetchAdd { address, rkey, add },
        Operation::CompareSwap { address, rkey, compare, swap },
    ]
}

/// Posts a READ and what changes what it reads in one list; the READ is `first` or last.
fn change(from: &mut End, to: &mut End, change: Operation, bytes: usize, first: bool, fence: bool) {
    let changed = match change {
        Operation::Write { .. } | Operation::Send => bytes,
        _ => 8,
    };
    to.memory[..bytes].fill(OLD);
    from.memory[GIVEN..GIVEN + changed].fill(NEW);
    from.memory[READ..READ + bytes].fill(0);
    let sends = matches!(change, Operation::Send);
    if sends {
        to.qps[0].post_recv(5, &[to.sge(0, bytes)]).unwrap();
    }
    let sges = [from.sge(READ, bytes), from.sge(GIVEN, changed)];
    let mut list: [SendRequest<'_>; 2] =
        [request(0, to.read_from(0), &sges[..1]), request(1, change, &sges[1..])];
    if !first {
        list.reverse();
    }
    list[1].fence = fence;
    post(&from.qps[0], &list).unwrap();
    from.succeeds(2);
    to.succeeds(usize::from(sends));
    let mut left = vec![OLD; bytes];
    left[..changed].fill(NEW);
    assert!(to.memory[..bytes] == left, "{change:?}, {bytes} bytes");
    if first {
        left.fill(OLD);
    }
    let got = &from.memory[READ..READ + bytes];
    let wrong = (0..bytes).find(|at| got[*at] != left[*at]);
    assert_eq!(wrong, None, "READ and {change:?}, {bytes} bytes");
}

#[test]
fn a_read_gets_what_was_there_in_its_turn() {
    const LOSSY: &str = "rx.drop=5%,seed=3";
    for (faults, first, fence) in [
        (["", ""], true, false),
        (["", ""], false, false),
        (["", LOSSY], true, false),
        // A READ whose answer is lost is repeated and reads anew, so that only a fence keeps the order.
        ([LOSSY, ""], true, true),
    ] {
        let plan = Plan::on(1, "delay=2us");
        let (mut from, mut to) = pair_with(&plan, faults);
        for operation in changes(&to) {
            for bytes in SIZES {
                change(&mut from, &mut to, operation, bytes, first, fence);
            }
        }
    }
}
