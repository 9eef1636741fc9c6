//! Random cases with one cause each, whose other limits are clearly further away by the arithmetic here. It knows nothing of
//! how `why` decides.

use fastrand::Rng;
use plan::Case;
use settings::{Mtu, Op, Settings, Workload};
use softroce::net::Faults;

use crate::traffic::{Site, WorkerTimes};

/// A cause, and how to draw a case that it limits.
pub struct Plant {
    /// The cause's name; what is planted where that is none.
    pub name: &'static str,
    /// Names of causes that are as right.
    pub also: &'static [&'static str],
    draw: fn(&mut Draft, &mut Rng) -> Option<()>,
}

/// What has to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Cause,
    /// The case runs at its link's rate.
    Link,
    /// No cause: the limit is one that nobody has thought of.
    Unknown,
}

/// A case with its site before it is made.
struct Draft {
    settings: Settings,
    link_gbit_per_s: f64,
    delay_ns: f64,
    most_reads: u8,
    workers: [WorkerTimes; 2],
    /// Of the end that sends the payload, and of the one that gets it.
    faults: [Vec<String>; 2],
    rest_ns: u64,
}

/// A worker that limits nothing here.
const FAST: WorkerTimes = WorkerTimes { call_ns: 20, wr_ns: 10, completion_ns: 20, latency_ns: 5 };

/// Bytes of a packet on the link besides its payload.
const HEADER_BYTES: f64 = 44.0;

/// What a peer's window holds of packets with this much of each for the kernel, half of it, so that twice as much fits too.
const WINDOW_BYTES: u32 = 700 << 10;
const OVERHEAD_BYTES: u32 = 1340;

impl Draft {
    fn new(rng: &mut Rng) -> Draft {
        let mtu_bytes = *pick(rng, &[512, 1024, 1024, 2048, 4096]);
        let settings = Settings {
            op: Workload::Transfer(*pick(rng, &[Op::Send, Op::Write, Op::Write, Op::Read])),
            mtu: Mtu::try_from(mtu_bytes).ok(),
            qps: *pick(rng, &[1, 1, 2, 3, 4, 8]),
            size_bytes: mtu_bytes * *pick(rng, &[1, 2, 2, 4, 4, 8]),
            tx_depth: *pick(rng, &[8, 16, 16, 32, 64]),
            rx_depth: 512,
            ..Settings::default()
        };
        Draft {
            settings,
            link_gbit_per_s: *pick(rng, &[10.0, 25.0, 40.0]),
            delay_ns: rng.u32(500..2_000).into(),
            most_reads: 128,
            workers: [FAST; 2],
            faults: [Vec::new(), Vec::new()],
            rest_ns: 0,
        }
    }

    fn mtu_bytes(&self) -> u32 {
        self.settings.mtu.map_or(1024, u32::from)
    }

    fn packets(&self) -> u32 {
        self.settings.size_bytes.div_ceil(self.mtu_bytes())
    }

    /// Payload that the link can carry.
    fn most_gbit_per_s(&self) -> f64 {
        let bytes = f64::from(self.settings.size_bytes);
        let on_wire = bytes + f64::from(self.packets()) * HEADER_BYTES;
        self.link_gbit_per_s * bytes / on_wire
    }

    fn in_flight(&self) -> u32 {
        self.settings.qps * self.settings.tx_depth
    }

    fn is_read(&self) -> bool {
        self.settings.op.transfer() == Op::Read
    }

    /// A round trip of a message without others, in nanoseconds.
    fn round_trip_ns(&self) -> f64 {
        let bits = f64::from(self.settings.size_bytes) * 8.0;
        2.0 * self.delay_ns + bits / self.most_gbit_per_s() + 300.0
    }

    /// What so many messages at a time move.
    fn window_gbit_per_s(&self, messages: u32) -> f64 {
        f64::from(messages * self.settings.size_bytes) * 8.0 / self.round_trip_ns()
    }

    /// What the worker of an end moves.
    fn worker_gbit_per_s(&self, end: usize) -> f64 {
        let times = self.workers[end];
        let ns = times.call_ns + times.wr_ns + times.completion_ns + times.latency_ns;
        f64::from(self.settings.size_bytes * 8 * self.settings.workers) / ns as f64
    }

    /// Whether all that `limit_gbit_per_s` does not stand for leaves this much more.
    fn is_clear(&self, limit_gbit_per_s: f64, factor: f64) -> bool {
        let windows = self.window_gbit_per_s(self.in_flight());
        let worker = self.worker_gbit_per_s(0).min(self.worker_gbit_per_s(1));
        self.fits() && limit_gbit_per_s * factor <= windows.min(worker).min(self.most_gbit_per_s())
    }

    /// Whether the device takes as much in flight, and twice as much.
    fn fits(&self) -> bool {
        let packets = self.in_flight() * self.packets();
        packets <= 160 && packets * (self.mtu_bytes() + OVERHEAD_BYTES) <= WINDOW_BYTES
    }

    fn make(mut self, seed: u64, noise: f64) -> (Site, Case) {
        let [sending, receiving] = self.faults.each_ref().map(|faults| {
            let parts = [vec![format!("seed={seed}")], faults.clone()].concat();
            parts.join(",").parse::<Faults>().expect("faults")
        });
        let faults = if self.is_read() { [receiving, sending] } else { [sending, receiving] };
        self.settings.signal_every = self.settings.signal_every.min(self.settings.tx_depth).max(1);
        self.settings.fit();
        let site = Site {
            seed,
            link_gbit_per_s: self.link_gbit_per_s,
            delay_ns: self.delay_ns as u64,
            faults,
            workers: self.workers,
            most_reads: self.most_reads,
            rest_ns: self.rest_ns,
            noise,
        };
        (site, Case::new("planted".to_owned(), self.settings))
    }
}

impl Plant {
    pub fn truth(&self) -> Truth {
        match self.name {
            "(the link)" => Truth::Link,
            "(nothing)" => Truth::Unknown,
            _ => Truth::Cause,
        }
    }

    /// The case of this number.
    pub fn case(&self, number: u64, noise: f64) -> (Site, Case) {
        let name =
            self.name.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31) ^ u64::from(byte));
        let mut rng = Rng::with_seed(name ^ number << 32);
        loop {
            let mut draft = Draft::new(&mut rng);
            if (self.draw)(&mut draft, &mut rng).is_some() {
                return draft.make(rng.u64(..), noise);
            }
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.usize(..choices.len())]
}

fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.f64()
}

const fn plant(name: &'static str, draw: fn(&mut Draft, &mut Rng) -> Option<()>) -> Plant {
    Plant { name, also: &[], draw }
}

/// How much further away the next limit is, at least.
const CLEAR: f64 = 1.3;

pub const PLANTS: &[Plant] = &[
    plant("bytes_in_flight", |draft, rng| {
        draft.settings.tx_depth = *pick(rng, &[1, 2, 4, 8, 16]);
        let factor = between(rng, CLEAR, 5.0);
        let bits = f64::from(draft.in_flight() * draft.settings.size_bytes) * 8.0;
        let trip_ns = bits * factor / draft.most_gbit_per_s();
        draft.delay_ns += (trip_ns - draft.round_trip_ns()) / 2.0;
        let is_long = draft.delay_ns > 500.0;
        (is_long && draft.fits() && draft.worker_gbit_per_s(0) > 2.0 * draft.most_gbit_per_s())
            .then_some(())
    }),
    plant("reads_outstanding", |draft, rng| {
        draft.settings.op = Workload::Transfer(Op::Read);
        let reads = *pick(rng, &[1, 2, 4, 8, 16]);
        if rng.bool() {
            draft.most_reads = reads;
        } else {
            draft.settings.max_rd_atomic = Some(reads);
        }
        let at_a_time = draft.settings.qps * u32::from(reads);
        let factor = between(rng, CLEAR, 4.0);
        let bits = f64::from(at_a_time * draft.settings.size_bytes) * 8.0;
        draft.delay_ns += (bits * factor / draft.most_gbit_per_s() - draft.round_trip_ns()) / 2.0;
        let is_deep = draft.settings.tx_depth >= 2 * u32::from(reads);
        (is_deep
            && draft.delay_ns > 300.0
            && draft.is_clear(draft.window_gbit_per_s(at_a_time), CLEAR))
        .then_some(())
    }),
    plant("packets", |draft, rng| {
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, CLEAR, 5.0);
        let of_packet = f64::from(draft.settings.size_bytes) * 8.0 / f64::from(draft.packets());
        let end = rng.usize(..2);
        let way = ["tx", "rx"][end];
        let per_s = gbit_per_s * 1e9 / of_packet;
        draft.faults[end].push(format!("{way}.pps={per_s:.0}"));
        draft.is_clear(gbit_per_s, CLEAR).then_some(())
    }),
    plant("bits", |draft, rng| {
        let share = 1.0 / between(rng, CLEAR, 5.0);
        let end = rng.usize(..2);
        let way = ["tx", "rx"][end];
        draft.faults[end].push(format!("{way}.rate={:.3}G", draft.link_gbit_per_s * share));
        draft.is_clear(draft.most_gbit_per_s() * share, CLEAR).then_some(())
    }),
    plant("sender_worker", |draft, rng| {
        draft.workers[0] = WorkerTimes {
            call_ns: rng.u64(100..800),
            wr_ns: rng.u64(20..100),
            completion_ns: rng.u64(50..400),
            latency_ns: rng.u64(20..150),
        };
        let limit = draft.worker_gbit_per_s(0);
        let is_fit = draft.settings.tx_depth >= 8 || draft.settings.qps > 1;
        let next = draft.most_gbit_per_s().min(draft.window_gbit_per_s(draft.in_flight()));
        (is_fit && draft.fits() && limit * CLEAR <= next).then_some(())
    }),
    plant("(the link)", |draft, _| {
        let window = draft.window_gbit_per_s(draft.in_flight());
        let worker = draft.worker_gbit_per_s(0).min(draft.worker_gbit_per_s(1));
        (draft.fits() && window.min(worker) > CLEAR * draft.most_gbit_per_s()).then_some(())
    }),
    plant("(nothing)", |draft, rng| {
        // Messages a second of the whole device, whatever their size: no row has it. One packet each would be `packets`.
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, CLEAR, 5.0);
        draft.rest_ns = (f64::from(draft.settings.size_bytes) * 8.0 / gbit_per_s) as u64;
        (draft.packets() > 1 && draft.is_clear(gbit_per_s, CLEAR)).then_some(())
    }),
];
