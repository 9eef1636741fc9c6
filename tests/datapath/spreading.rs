//! A worker that is one source for its QPs posts each message on the QP and at the time that its policy says, and counts
//! how often that QP's queue was full: by a model of the policies that knows only when slots completed.

use std::collections::{HashMap, VecDeque};

use datapath::Geometry;
use null_verbs::loopback::Served;
use plan::Case;
use settings::{CqMode, Op, Settings, Spread};

use crate::bench::US;
use crate::exact::list;
use crate::loopback_node::{Steer, case_of, small};
use crate::planned::for_seeds;

#[derive(Clone, Copy, Default)]
struct Queue {
    in_flight: u32,
    /// When it came to have so many, by a count of changes.
    since: u64,
}

struct Source<'c> {
    case: &'c Case,
    worker: usize,
    mine: Vec<usize>,
    queues: Vec<Queue>,
    changes: u64,
    credits: u64,
    left: u64,
    chosen: Option<usize>,
    number: u64,
    /// What each group of weights has, and its next QP.
    groups: Vec<(i64, i64, VecDeque<usize>)>,
    blocked: u64,
    /// When each QP's slots are posted.
    posts_ns: HashMap<usize, Vec<u64>>,
}

impl<'c> Source<'c> {
    fn new(case: &'c Case, worker: usize, workers: usize, messages: u64) -> Source<'c> {
        let geometry = Geometry::from_flow(case);
        let qps = case.qps as usize;
        let mine: Vec<usize> = (worker..qps).step_by(workers).collect();
        let slots = u64::from(geometry.slots) * mine.len() as u64;
        let credits = case.outstanding.map_or(slots / 2, |wrs| u64::from(wrs / geometry.unit));
        let weights: Vec<(u32, u32)> = match &case.qp_weights {
            Some(weights) => weights.groups().collect(),
            None => vec![(case.qps, 1)],
        };
        let mut first = 0;
        let groups = weights
            .into_iter()
            .map(|(count, share)| {
                let group = first..first + count as usize;
                first = group.end;
                let own: VecDeque<usize> =
                    mine.iter().copied().filter(|qp| group.contains(qp)).collect();
                let share = (i64::from(share) << 20) * own.len() as i64 / i64::from(count);
                (share, 0, own)
            })
            .filter(|(.., own)| !own.is_empty())
            .collect();
        Source {
            case,
            worker,
            queues: vec![Queue::default(); qps],
            changes: 0,
            credits: credits.clamp(1, slots),
            left: messages * mine.len() as u64 / u64::from(geometry.unit),
            chosen: None,
            number: 0,
            groups,
            blocked: 0,
            posts_ns: HashMap::new(),
            mine,
        }
    }

    fn choose(&mut self) -> usize {
        match self.case.spread {
            Spread::Own => panic!("no source"),
            Spread::RoundRobin => {
                // As nginx does: each gets its weight, who has most is next and pays for all.
                let sum: i64 = self.groups.iter().map(|(share, ..)| share).sum();
                self.groups.iter_mut().for_each(|(share, has, _)| *has += *share);
                let most = self.groups.iter().map(|(_, has, _)| *has).max().unwrap();
                let (_, has, own) =
                    self.groups.iter_mut().find(|(_, has, _)| *has == most).unwrap();
                *has -= sum;
                own.rotate_left(1);
                own[own.len() - 1]
            }
            Spread::LeastLoaded => *self
                .mine
                .iter()
                .min_by_key(|qp| (self.queues[**qp].in_flight, self.queues[**qp].since))
                .unwrap(),
            Spread::Hash => {
                let hash = mix(mix(self.worker as u64).wrapping_add(self.number));
                self.number += 1;
                self.mine[((u128::from(hash) * self.mine.len() as u128) >> 64) as usize]
            }
        }
    }

    fn set(&mut self, qp: usize, in_flight: u32) {
        self.changes += 1;
        self.queues[qp] = Queue { in_flight, since: self.changes };
    }

    fn post(&mut self, now_ns: u64) {
        while self.credits > 0 && self.left > 0 {
            let waits = self.chosen.take();
            let qp = waits.unwrap_or_else(|| self.choose());
            let in_flight = self.queues[qp].in_flight;
            if in_flight == Geometry::from_flow(self.case).slots {
                self.blocked += u64::from(waits.is_none());
                self.chosen = Some(qp);
                return;
            }
            self.set(qp, in_flight + 1);
            (self.credits, self.left) = (self.credits - 1, self.left - 1);
            self.posts_ns.entry(qp).or_default().push(now_ns);
        }
    }

    fn completed(&mut self, qp: usize, now_ns: u64) {
        self.credits += 1;
        self.set(qp, self.queues[qp].in_flight - 1);
        self.post(now_ns);
    }
}

/// The finalizer of SplitMix64, which the policy hashes with.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn each_message_is_where_and_when_the_policy_says() {
    let mut blocked_by: HashMap<&str, u64> = HashMap::new();
    for_seeds(250, |seed| {
        let choices = &mut seed.choices;
        let signal_every = choices.one(&[1, 1, 4]);
        let post_list = choices.one(&[1, signal_every, 2 * signal_every]);
        let unit = signal_every.max(post_list);
        let qps = choices.upto(9) as u32 + 1;
        let first = choices.upto(u64::from(qps) - 1) as u32;
        let weights = format!("{first}:{},{}:{}", choices.upto(5), qps - first, choices.upto(5));
        let spread = choices.one(&[Spread::RoundRobin, Spread::LeastLoaded, Spread::Hash]);
        let is_weighted = spread == Spread::RoundRobin && choices.one(&[true, false]);
        let outstanding = unit * choices.upto(9) as u32;
        let requested = case_of(Settings {
            spread,
            cq: CqMode::PerWorker,
            workers: choices.upto(3) as u32,
            qps,
            qp_weights: is_weighted.then(|| weights.parse().unwrap()),
            signal_every,
            post_list,
            tx_depth: unit * choices.upto(4) as u32,
            outstanding: choices.one(&[None, Some(outstanding)]),
            ..small(Op::Write)
        });
        let times = (0..7).map(|_| choices.upto(20 * US)).collect();
        let messages = u64::from(unit) * choices.upto(30);
        let serving = list(times, choices.one(&[true, false]));
        let set_up = seed.bench(&requested, serving);
        let (started_ns, over) = set_up.run(|bench| {
            let started_ns = bench.now_ns();
            bench.run_counted(messages, None).unwrap();
            started_ns
        });
        let case = &set_up.case;
        over.rest.assert_clean();
        let (_, shared, reports) = &over.rest.client;
        let qp_of: HashMap<u32, usize> =
            shared.qp_contexts().iter().map(|it| it.qp.qpn()).zip(0..).collect();
        let workers = reports.len();
        let mut sources: Vec<Source<'_>> =
            (0..workers).map(|worker| Source::new(case, worker, workers, messages)).collect();
        sources.iter_mut().for_each(|source| source.post(started_ns));
        let mut served_of = vec![0_u32; case.qps as usize];
        let mut posted_ns: HashMap<usize, Vec<u64>> = HashMap::new();
        for Served { qp_num, posted_ns: at_ns, done_ns, .. } in &over.served {
            let qp = qp_of[qp_num];
            served_of[qp] += 1;
            if served_of[qp].is_multiple_of(unit) {
                posted_ns.entry(qp).or_default().push(*at_ns);
                sources[qp % workers].completed(qp, *done_ns);
            }
        }
        let expected: HashMap<usize, Vec<u64>> =
            sources.iter_mut().flat_map(|it| std::mem::take(&mut it.posts_ns)).collect();
        assert_eq!(posted_ns, expected);
        let of_report: Vec<u64> = reports.iter().map(|report| report.blocked).collect();
        let blocked: Vec<u64> = sources.iter().map(|it| it.blocked).collect();
        assert_eq!(of_report, blocked);
        *blocked_by.entry(spread.name()).or_default() += blocked.iter().sum::<u64>();
    });
    // Who looks is never held up; who does not look is.
    assert_eq!(blocked_by[Spread::LeastLoaded.name()], 0);
    assert!(blocked_by[Spread::Hash.name()] > 0 && blocked_by[Spread::RoundRobin.name()] > 0);
}
