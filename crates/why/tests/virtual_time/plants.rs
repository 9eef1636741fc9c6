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
    least_packets: u64,
}

/// Packets of a window: for figures of speed, and to see losses of one in a hundred.
const FEW: u64 = 200;
const MANY: u64 = 1_000;

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
            least_packets: FEW,
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

    fn at_both_ends(&mut self, fault: &str) {
        self.faults.iter_mut().for_each(|faults| faults.push(fault.to_owned()));
    }

    /// A receiver that posts receives more slowly than messages could come.
    fn slow_receiver(&mut self, rng: &mut Rng) {
        self.settings.op = Workload::Transfer(Op::Send);
        let gbit_per_s = self.most_gbit_per_s() / between(rng, CLEAR, 4.0);
        let ns = (f64::from(self.settings.size_bytes) * 8.0 / gbit_per_s) as u64;
        let half = WorkerTimes { call_ns: ns / 2, completion_ns: ns / 2, ..WorkerTimes::default() };
        self.workers[1] = half;
        self.settings.rx_depth = self.settings.tx_depth / *pick(rng, &[2, 4, 8]);
    }

    fn has_slow_receiver(&self) -> bool {
        let next = self.window_gbit_per_s(self.in_flight()).min(self.worker_gbit_per_s(0));
        self.fits() && self.worker_gbit_per_s(1) * CLEAR <= next.min(self.most_gbit_per_s())
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
            least_packets: self.least_packets,
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

/// The port, less the first one, from which packets with a flow label are sent: the embedded device has 16.
fn source_port(label: u32) -> u32 {
    ((label ^ label >> 16).wrapping_mul(0x9e37_79b9) >> 16) % 16
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
    plant("receiver_not_ready", |draft, rng| {
        draft.slow_receiver(rng);
        draft.settings.min_rnr_timer = *pick(rng, &[1, 4, 8, 12]);
        draft.has_slow_receiver().then_some(())
    }),
    plant("rnr_timer", |draft, rng| {
        draft.slow_receiver(rng);
        draft.settings.min_rnr_timer = 0;
        draft.has_slow_receiver().then_some(())
    }),
    plant("lossy_link", |draft, rng| {
        // A lost packet costs the time of about as many as are in flight.
        let packets = f64::from(draft.in_flight() * draft.packets());
        let share = between(rng, 1.5, 4.0) / packets;
        draft.least_packets = MANY;
        draft.faults[0].push(format!("tx.drop={share:.6}"));
        (draft.is_clear(0.0, CLEAR) && share < 0.1).then_some(())
    }),
    plant("congestion", |draft, rng| {
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, 1.5, 5.0);
        let bits = f64::from(draft.in_flight() * draft.settings.size_bytes) * 8.0;
        draft.least_packets = MANY;
        let queue_ns = bits / gbit_per_s * between(rng, 0.1, 0.35);
        let rate = draft.link_gbit_per_s * gbit_per_s / draft.most_gbit_per_s();
        draft.faults[0].push(format!("tx.rate={rate:.3}G,tx.queue={queue_ns:.0}ns"));
        let packets = draft.in_flight() * draft.packets();
        (packets >= 32 && draft.is_clear(gbit_per_s, CLEAR)).then_some(())
    }),
    plant("spraying", |draft, rng| {
        let packet_ns = f64::from(draft.settings.size_bytes) * 8.0
            / (draft.most_gbit_per_s() * f64::from(draft.packets()));
        let (paths, spread_ns) = (rng.u32(2..8), packet_ns * between(rng, 4.0, 16.0));
        draft.faults[0].push(format!("tx.paths={paths}~{spread_ns:.0}ns"));
        draft.least_packets = MANY;
        let of_qp = draft.settings.tx_depth * draft.packets();
        (of_qp >= 16 && draft.is_clear(0.0, CLEAR)).then_some(())
    }),
    plant("slow_path", |draft, rng| {
        draft.settings.qps = rng.u32(1..3);
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, 1.5, 5.0);
        let rate = draft.link_gbit_per_s * gbit_per_s / draft.most_gbit_per_s();
        let (paths, slow) = (*pick(rng, &[4, 8]), rng.u32(..4));
        let labels = [rng.u32(1..1 << 19), rng.u32(1..1 << 19)];
        draft.settings.flow_label = format!("{},{}", labels[0], labels[1]).parse().ok();
        draft.faults[0].push(format!("tx.slow_path={slow}/{paths}:{rate:.3}G"));
        let are_slow = labels.iter().all(|label| source_port(*label) % paths == slow);
        (are_slow && draft.is_clear(gbit_per_s, CLEAR)).then_some(())
    }),
    plant("qp_cache", |draft, rng| {
        draft.settings.qps = *pick(rng, &[16, 24, 32, 48, 64]);
        draft.settings.tx_depth = *pick(rng, &[1, 1, 2]);
        draft.settings.size_bytes = draft.mtu_bytes() * *pick(rng, &[1, 1, 2]);
        let bits = f64::from(draft.settings.size_bytes) * 8.0;
        let message_ns = bits / draft.most_gbit_per_s();
        let miss_ns = message_ns * between(rng, 1.5, 5.0);
        let contexts = rng.u32(draft.settings.qps / 4 + 1..draft.settings.qps * 3 / 4);
        draft.faults[0].push(format!(
            "tx.rate={}G,tx.qp_cache={contexts}:{miss_ns:.0}ns",
            draft.link_gbit_per_s
        ));
        draft.is_clear(bits / (message_ns + miss_ns), CLEAR).then_some(())
    }),
    plant("qp_packets", |draft, rng| {
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, CLEAR, 5.0);
        let bits_of_packet =
            f64::from(draft.settings.size_bytes) * 8.0 / f64::from(draft.packets());
        let per_s = gbit_per_s * 1e9 / bits_of_packet / f64::from(draft.settings.qps);
        draft.at_both_ends(&format!("tx.qp_rate={per_s:.0}"));
        draft.is_clear(gbit_per_s, CLEAR).then_some(())
    }),
    plant("qp_window", |draft, rng| {
        let gbit_per_s = draft.most_gbit_per_s() / between(rng, CLEAR, 5.0);
        let of_qp = gbit_per_s / f64::from(draft.settings.qps);
        if rng.bool() || draft.is_read() {
            let on_wire = draft.link_gbit_per_s / draft.most_gbit_per_s();
            draft.at_both_ends(&format!("tx.qp_rate={:.3}G:bits", of_qp * on_wire));
        } else {
            // Each packet counts as a full one, and a round trip has that of a packet.
            draft.delay_ns = between(rng, 5_000.0, 50_000.0);
            let bytes = of_qp * (2.0 * draft.delay_ns) / 8.0;
            draft.at_both_ends(&format!("qp_window={bytes:.0}"));
            (bytes > f64::from(4 * draft.settings.size_bytes)).then_some(())?;
        }
        draft.is_clear(gbit_per_s, CLEAR).then_some(())
    }),
    plant("odd_size", |draft, rng| {
        draft.settings.size_bytes += rng.u32(1..64);
        let bits = f64::from(draft.settings.size_bytes) * 8.0;
        let more_ns = bits / draft.most_gbit_per_s() * between(rng, 1.0, 4.0);
        draft.faults[0]
            .push(format!("tx.rate={}G,tx.unaligned={more_ns:.0}ns", draft.link_gbit_per_s));
        let gbit_per_s = bits / (bits / draft.most_gbit_per_s() + more_ns);
        draft.is_clear(gbit_per_s, CLEAR).then_some(())
    }),
    plant("paused_by_network", |draft, rng| {
        let (share, period_us) = (between(rng, 0.3, 0.8), rng.u32(10..40));
        let link = draft.link_gbit_per_s;
        draft.faults[0].push(format!("tx.rate={link}G,tx.pause={share:.3}/{period_us}us"));
        draft.least_packets = MANY;
        draft.is_clear(draft.most_gbit_per_s() * (1.0 - share), CLEAR).then_some(())
    }),
    plant("paused_by_host", |draft, rng| {
        let (share, period_us) = (between(rng, 0.3, 0.8), rng.u32(10..40));
        let link = draft.link_gbit_per_s;
        draft.faults[1].push(format!("rx.rate={link}G,rx.pause={share:.3}/{period_us}us"));
        draft.least_packets = MANY;
        draft.is_clear(draft.most_gbit_per_s() * (1.0 - share), CLEAR).then_some(())
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
