//! Sixteen senders to one receiver: all data arrive right and no QP fails. Where the links mark, senders are told and no queue
//! overflows; where they do not, queues lose. The same seed has the same effects.

use softroce::transport::{QpEvent, State};

use crate::support::end::{End, Plan};

const SENDERS: usize = 16;
const MESSAGES: usize = 48;
const BYTES: usize = 64 << 10;

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
        memory_bytes: MESSAGES * BYTES,
        receive_buffer_bytes: buffer_bytes,
        ..Plan::on(seed, link)
    };
    let mut senders: Vec<End> = (0..SENDERS).map(|_| End::new(&plan)).collect();
    let target =
        End::new(&Plan { qps: SENDERS, memory_bytes: SENDERS * MESSAGES * BYTES, ..plan.clone() });
    let mut numbers = fastrand::Rng::with_seed(seed);
    for (sender, qp) in senders.iter_mut().zip(&target.qps) {
        numbers.fill(&mut sender.memory);
        sender.connect_qps(&sender.qps[0], &target, qp);
        target.connect_qps(qp, sender, &sender.qps[0]);
    }
    for message in 0..MESSAGES {
        for (number, sender) in senders.iter().enumerate() {
            let (here, there) = (message * BYTES, (number * MESSAGES + message) * BYTES);
            if reads {
                target.post(number, sender.read_from(here), &[target.sge(there, BYTES)]);
            } else {
                sender.post(0, target.write_to(there), &[sender.sge(here, BYTES)]);
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
    let places = target.memory.chunks(MESSAGES * BYTES);
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
        let told = |it: &End| it.counter("rp_cnp_handled") > 0;
        assert!(run.senders.iter().all(told));
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
