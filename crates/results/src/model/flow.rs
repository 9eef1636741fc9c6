//! What a flow moved in its window: rates, QPs, throughput over time, the load of an open loop, and the link's limits.

use schemars::JsonSchema;
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use settings::{Arrivals, names};
use statistics::{is_starved, shares};

use super::config::FlowConfig;
use super::distribution::{Bandwidth, Latency};
use super::run::Failure;

/// One flow's figures in the window, measured at the node that posts its WRs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResult {
    /// Name of the flow, as in `config.flows`.
    pub name: String,
    /// The node that posts its WRs: it sends, writes or reads.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// The measured time, at the node `from`.
    pub window: Window,
    /// All QPs together, at the node `from`; over UC and UD these are the sent messages.
    pub totals: Totals,
    /// Latencies of all QPs, in nanoseconds: from the post, in an open loop from the planned time, until the worker sees
    /// the completion. With `timestamps` `device` they end at the device's time stamp of the completion. `null` with
    /// `no_latency`.
    pub latency_ns: Option<Latency>,
    /// Open loop: from the post until the worker sees the completion, in nanoseconds; `null` in a closed loop.
    pub service_ns: Option<Latency>,
    /// Open loop: how late messages were posted although their send queue had room, in nanoseconds; `null` in a
    /// closed loop.
    pub lateness_ns: Option<Latency>,
    /// With `timestamps` `device`: from the device's time stamp of a completion until the worker sees it, in nanoseconds, for
    /// completions with a recorded latency; `null` otherwise.
    pub notice_ns: Option<Latency>,
    /// Compare-swap: how many of `totals.messages` exchanged the value; the others found another QP's. `null` for other
    /// operations.
    pub swaps_made: Option<u64>,
    /// Open loop: the offered load and its outcome; `null` in a closed loop.
    pub load: Option<Load>,
    /// Throughput over the intervals of `timeline`; `null` if there is none.
    pub bandwidth_gbit_per_s: Option<Bandwidth>,
    /// How evenly the QPs were served; `null` with a single QP, and without traffic.
    pub fairness: Option<Fairness>,
    /// The figures of each QP, in the order of their indices; a file may leave them out to be small.
    pub qps: Vec<QpResult>,
    /// What the link allows; `null` if its speed is unknown.
    pub limits: Option<Limits>,
    /// Throughput over the window; `null` if it was not sampled.
    pub timeline: Option<Timeline>,
    /// Throughput of each QP over the window; `null` with a single QP, and with too many: a node records 1,024 QPs,
    /// an equal part for each flow that it sends.
    pub qp_timeline: Option<QpTimeline>,
    /// SEND in one direction: what the node `to` received in the window; `null` otherwise.
    pub received: Option<Received>,
    /// Over UC and UD: how many messages came, and how many did not. `null` over RC, where all come, and for RDMA WRITE,
    /// which the node `to` does not see.
    pub delivery: Option<Delivery>,
    /// Receives at the node `to`, for operations that use them; `null` otherwise.
    pub receive_queues: Option<ReceiveQueues>,
    /// The memory of its ends, of those that have it behind a dmabuf or on a GPU; left out if none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<EndMemory>,
    /// With `mesh --check`: why it failed, while other flows of the run went on; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Memory of a flow's end that is not the host's ordinary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndMemory {
    /// The node of the end.
    pub node: String,
    /// Its place: `dmabuf`, or a GPU, `cuda:0`.
    pub place: String,
    /// Whose it is: what made the dmabuf, or the GPU's name and its PCI address.
    pub of: String,
    /// How the device learnt of it.
    pub registered_by: RegisteredBy,
    /// From the GPU to the device, over PCIe; `null` of the host's memory, and if unknown.
    pub distance: Option<String>,
    /// A GPU that is nearer to the device; `null` if there is none.
    pub nearer: Option<String>,
}

names! {
    /// How a device learnt of memory.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    RegisteredBy {
        /// By its address: it is the host's.
        #[default]
        Address = "ibv_reg_mr",
        /// By its dmabuf, which the driver of its owner exports.
        Dmabuf = "ibv_reg_dmabuf_mr",
        /// By its address on a GPU, which a peer-memory module of the kernel knows.
        PeerMemory = "ibv_reg_mr and peer memory",
    }
}

impl QpResult {
    /// The most QPs of a flow that have a histogram each: with more they would be half of a large file. The flow has that
    /// of all its QPs.
    pub const MOST_HISTOGRAMS: usize = 4096;
}

impl FlowResult {
    /// A flow that has moved nothing.
    pub fn new(config: &FlowConfig) -> FlowResult {
        FlowResult {
            name: config.name.clone(),
            from: config.from.clone(),
            to: config.to.clone(),
            ..FlowResult::default()
        }
    }

    /// What the flows of a run moved together, without latencies and window; fairness is that of flows, not of QPs.
    pub fn together(flows: &[FlowResult]) -> FlowResult {
        let rates: Option<Vec<f64>> = flows.iter().map(FlowResult::gbit_per_s).collect();
        let loads: Option<Vec<&Load>> = flows.iter().map(|flow| flow.load.as_ref()).collect();
        FlowResult {
            totals: flows
                .iter()
                .map(|flow| flow.totals.clone())
                .reduce(|sum, totals| sum.plus(&totals))
                .unwrap_or_default(),
            fairness: rates.and_then(|rates| Fairness::new(&rates)),
            load: loads.and_then(|loads| Load::sum(&loads)),
            delivery: Delivery::of_flows(flows),
            ..FlowResult::default()
        }
    }

    /// How an open loop went; `None` of a closed loop.
    pub fn verdict(&self) -> Option<LoadVerdict> {
        self.load.as_ref().map(|load| load.verdict)
    }

    /// Open loop: times are recorded for one message in so many.
    fn recorded_one_in(&self) -> Option<u64> {
        self.load.as_ref().map(|load| load.recorded_one_in)
    }

    /// What the receiver got over what was sent, where they differ by more than 2 %: what is in flight when a window opens
    /// or closes counts for one end only. `None` of UC and UD, whose losses are counted.
    pub fn received_otherwise(&self) -> Option<f64> {
        let received = self.received.as_ref().filter(|_| self.delivery.is_none())?;
        let share = received.share_of(self);
        (share.is_finite() && (share - 1.0).abs() > 0.02).then_some(share)
    }

    /// Payload throughput, in 10^9 bits a second, as it is shown, compared and judged: goodput where messages may be lost and
    /// are counted, else that of `totals`.
    pub fn gbit_per_s(&self) -> Option<f64> {
        match &self.delivery {
            Some(delivery) => delivery.goodput_gbit_per_s,
            None => self.totals.gbit_per_s,
        }
    }

    /// Message rate in 10^6 a second, of the same messages as [`FlowResult::gbit_per_s`].
    pub fn mmsg_per_s(&self) -> Option<f64> {
        match &self.delivery {
            Some(delivery) => delivery.goodput_mmsg_per_s,
            None => self.totals.mmsg_per_s,
        }
    }
}

impl Latency {
    /// Times of all flows in one distribution: no percentile is averaged. `None` where a flow has none, or has one of
    /// another part of its messages.
    pub fn merged(
        flows: &[FlowResult],
        of: fn(&FlowResult) -> Option<&Latency>,
    ) -> Option<Latency> {
        let first = flows.first()?;
        let latencies: Option<Vec<&Latency>> = flows
            .iter()
            .map(|flow| of(flow).filter(|_| flow.recorded_one_in() == first.recorded_one_in()))
            .collect();
        Latency::together(&latencies?)
    }

    /// All times in one distribution; `None` without any, and where a histogram is missing.
    pub fn together(latencies: &[&Latency]) -> Option<Latency> {
        let (first, others) = latencies.split_first()?;
        let mut histogram = first.histogram().ok()?;
        let mut overflows = first.overflows;
        for latency in others {
            histogram.add(&latency.histogram().ok()?).ok()?;
            overflows = overflows.saturating_add(latency.overflows);
        }
        Latency::from_histogram(&histogram, overflows)
    }
}

/// What all QPs moved together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Messages that completed in the window.
    pub messages: u64,
    /// Payload bytes of these messages, without headers.
    pub bytes: u64,
    /// Payload throughput, in 10^9 bits a second; `null` for a window without length.
    pub gbit_per_s: Option<f64>,
    /// Message rate, in 10^6 a second.
    pub mmsg_per_s: Option<f64>,
    /// Completions with an error, and payloads that failed verification.
    pub errors: u64,
}

impl Totals {
    /// What was moved in a window of `seconds`, with its rates.
    pub fn in_window(messages: u64, bytes: u64, errors: u64, seconds: f64) -> Totals {
        Totals {
            messages,
            bytes,
            gbit_per_s: gbit_per_s(bytes, seconds),
            mmsg_per_s: mmsg_per_s(messages, seconds),
            errors,
        }
    }

    /// What both moved together; a rate is missing where one of them has none.
    fn plus(self, other: &Totals) -> Totals {
        Totals {
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
            gbit_per_s: sum_of_two(self.gbit_per_s, other.gbit_per_s),
            mmsg_per_s: sum_of_two(self.mmsg_per_s, other.mmsg_per_s),
            errors: self.errors.saturating_add(other.errors),
        }
    }
}

/// Payload throughput in Gb/s (10^9 bits); `None` for a window without length.
pub fn gbit_per_s(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / 1e9 / seconds)
}

/// Message rate in 10^6 a second; `None` for a window without length.
pub fn mmsg_per_s(messages: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| messages as f64 / 1e6 / seconds)
}

/// The sum of counts. A file may hold any count that fits 64 bits, so sums stay at the largest.
pub fn saturating_sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

fn sum_of_two(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? + other?)
}

/// Fairness of the QPs' shares of the payload bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Jain's index: 1 is even, 1/n is one QP alone.
    pub jain: f64,
    /// The least served QP's bytes over an even share.
    pub min_share: f64,
    /// The best served QP's bytes over an even share.
    pub max_share: f64,
    /// QPs that got less than half of their share of the bytes, beyond chance: if all QPs are served alike, at most 1 of
    /// 10,000 runs names one, for any number of QPs.
    pub starved: Vec<StarvedQp>,
}

/// A QP that was served much worse than the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StarvedQp {
    /// Index within the case, from 0.
    pub index: u32,
    /// QP number that the device gave it.
    pub qpn: u32,
    /// Its bytes over its due share, which is even or follows `qp_weights`.
    pub share: f64,
}

impl Fairness {
    /// How evenly these amounts were shared; `None` when nothing was, or there was nobody to share with.
    pub fn new(amounts: &[f64]) -> Option<Fairness> {
        let shares = shares(amounts).filter(|_| amounts.len() > 1)?;
        Some(Fairness {
            jain: shares.jain,
            min_share: shares.min_share,
            max_share: shares.max_share,
            starved: Vec::new(),
        })
    }

    /// How evenly the bytes of these QPs were shared. Each was to get its `requested_shares` of an even share, and completions come for so
    /// many messages together.
    pub fn of_qps(
        qps: &[QpResult],
        requested_shares: &[f64],
        messages_per_completion: u32,
    ) -> Option<Fairness> {
        let bytes: Vec<f64> = qps.iter().map(|qp| qp.bytes as f64).collect();
        let even_bytes = bytes.iter().sum::<f64>() / qps.len() as f64;
        let messages: f64 = qps.iter().map(|qp| qp.messages as f64).sum();
        let together = messages_per_completion.max(1);
        let even_completions = messages / qps.len() as f64 / f64::from(together);
        Some(Fairness {
            starved: qps
                .iter()
                .zip(requested_shares)
                .filter_map(|(qp, requested)| {
                    let share = qp.bytes as f64 / (even_bytes * requested);
                    let completions = qp.messages.div_ceil(together.into());
                    let is_starved = share < 0.5
                        && is_starved(completions, even_completions * requested, qps.len());
                    is_starved.then_some(StarvedQp { index: qp.index, qpn: qp.qpn, share })
                })
                .collect(),
            ..Fairness::new(&bytes)?
        })
    }
}

/// One QP in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QpResult {
    /// Index within the case, from 0.
    pub index: u32,
    /// QP number that the device gave it.
    pub qpn: u32,
    /// UDP source port of its RoCE v2 packets, by which switches choose a path: the requested one, or computed like its driver
    /// does; `null` if unknown. Answers to READs have the port of the QP at the other end.
    pub udp_source_port: Option<u16>,
    /// Messages of this QP that completed in the window.
    pub messages: u64,
    /// Payload bytes of these messages, without headers.
    pub bytes: u64,
    /// Payload throughput of the QP, in 10^9 bits a second, over the windows of the workers that served it.
    pub gbit_per_s: Option<f64>,
    /// Its latencies, in nanoseconds; `null` when off or without a sample. In a flow of more than 4,096 QPs without the
    /// histogram.
    pub latency_ns: Option<Latency>,
    /// Open loop: from the post until the worker sees the completion, in nanoseconds; left out in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
    /// Open loop: how late messages were posted although its send queue had room, in nanoseconds; left out in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Latency>,
    /// Compare-swap: how many of `messages` exchanged the value; the others found another. left out of other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swaps_made: Option<u64>,
    /// Over UC and UD: messages of this QP that did not come, in the whole run. Left out if `delivery` is `null`, and if a UD QP
    /// sends to all QPs, since a receive does not show the sending QP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// What the node at the other end received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Messages that the node received in its own window.
    pub messages: u64,
    /// Payload bytes of these messages, without headers.
    pub bytes: u64,
    /// Length of the receiver's own window; it closes later than the sender's, by a message's time on the wire. `null`
    /// if the run ended after a number of messages.
    pub window_seconds: Option<f64>,
}

impl Received {
    /// What was received over what was sent, 1 for all of it; by the rate where the windows differ in length.
    pub fn share_of(&self, sent: &FlowResult) -> f64 {
        let share = self.messages as f64 / sent.totals.messages as f64;
        match self.window_seconds {
            Some(seconds) => share * sent.window.seconds / seconds,
            None => share,
        }
    }
}

/// How many messages came, over services that may lose them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Messages sent in the whole run, also in the warm-up.
    pub sent: u64,
    /// Messages received in the whole run.
    pub received: u64,
    /// Messages that were sent in the whole run and did not come.
    pub lost: u64,
    /// `lost` over `sent`; 0 where nothing was sent.
    pub lost_share: f64,
    /// Payload throughput received in the window, in 10^9 bits a second; `totals` count what was sent. `null` without a window.
    pub goodput_gbit_per_s: Option<f64>,
    /// Rate of those messages, in 10^6 a second.
    pub goodput_mmsg_per_s: Option<f64>,
}

impl Delivery {
    /// Of what was sent and received on each QP, without goodput.
    pub fn of_qps(sent: &[u64], received: &[u64]) -> Delivery {
        let sum_sent = saturating_sum(sent.iter().copied());
        let lost = saturating_sum(Delivery::lost_of_qps(sent, received));
        Delivery {
            sent: sum_sent,
            received: saturating_sum(received.iter().copied()),
            lost,
            lost_share: Delivery::share(lost, sum_sent),
            ..Delivery::default()
        }
    }

    /// Messages that did not come, of each QP; the network may double one.
    pub fn lost_of_qps(sent: &[u64], received: &[u64]) -> impl Iterator<Item = u64> {
        sent.iter().zip(received).map(|(sent, received)| sent.saturating_sub(*received))
    }

    /// Of all flows together; `None` if one has no such count.
    pub fn of_flows(flows: &[FlowResult]) -> Option<Delivery> {
        let deliveries: Option<Vec<&Delivery>> =
            flows.iter().map(|flow| flow.delivery.as_ref()).collect();
        deliveries?.into_iter().cloned().reduce(|sum, delivery| sum.plus(&delivery))
    }

    fn plus(self, other: &Delivery) -> Delivery {
        let sent = self.sent.saturating_add(other.sent);
        let lost = self.lost.saturating_add(other.lost);
        Delivery {
            sent,
            received: self.received.saturating_add(other.received),
            lost,
            lost_share: Delivery::share(lost, sent),
            goodput_gbit_per_s: sum_of_two(self.goodput_gbit_per_s, other.goodput_gbit_per_s),
            goodput_mmsg_per_s: sum_of_two(self.goodput_mmsg_per_s, other.goodput_mmsg_per_s),
        }
    }

    /// The part of what was sent that was lost; 0 where nothing was sent.
    pub fn share(lost: u64, sent: u64) -> f64 {
        match sent {
            0 => 0.0,
            sent => lost as f64 / sent as f64,
        }
    }
}

/// Receives of a flow at its receiving node, and their memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveQueues {
    /// Receive queues: one for each QP, or one SRQ.
    pub queues: u32,
    /// Receives posted in all of them.
    pub receives: u64,
    /// Buffer memory if each receive had its own buffer, as in a program that keeps what it receives, in bytes.
    pub buffer_bytes: u64,
    /// Buffer memory in use, in bytes: several receives share a buffer.
    pub allocated_bytes: u64,
    /// Memory of their work requests, prebuilt and in the device's queues, in bytes: computed before the run, and estimated
    /// for devices with a driver in the kernel.
    pub queue_bytes: u64,
    /// How often the device reported that fewer than a quarter of the receives were left
    /// (`IBV_EVENT_SRQ_LIMIT_REACHED`), at most once in 10 ms, over the whole run; `null` without an SRQ.
    pub limit_events: Option<u64>,
}

/// What the link allows, and how much of it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Speed of the link, in 10^9 bits a second, headers and gaps included; of the embedded device the rate in `--faults`, which
    /// counts IP packets.
    pub link_gbit_per_s: f64,
    /// Payload bytes over all bytes on the wire, 0 to 1.
    pub protocol_efficiency: f64,
    /// Payload throughput (over UC and UD the received one) over `link_gbit_per_s` × `protocol_efficiency`, or over that of
    /// `narrower`; `null` without a throughput.
    pub share_of_limit: Option<f64>,
    /// What carries less on the way to the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrower: Option<Narrower>,
}

/// A part between memory and link that carries less than the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Narrower {
    /// Its name, such as `PCIe 32 GT/s x4`, or `one member of bond0`.
    pub part: String,
    /// What it carries of payload, in 10^9 bits a second.
    pub payload_gbit_per_s: f64,
}

impl Limits {
    /// What they allow of payload, in 10^9 bits a second.
    pub fn payload_gbit_per_s(&self) -> f64 {
        let of_link = self.link_gbit_per_s * self.protocol_efficiency;
        self.narrower.as_ref().map_or(of_link, |narrower| narrower.payload_gbit_per_s.min(of_link))
    }

    /// What `share_of_limit` is of a payload throughput; `None` for a link without a speed.
    pub fn share_of(&self, gbit_per_s: f64) -> Option<f64> {
        let bound_gbit_per_s = self.payload_gbit_per_s();
        (bound_gbit_per_s > 0.0).then(|| gbit_per_s / bound_gbit_per_s)
    }

    /// The same share of the link alone, whatever carries less.
    pub fn share_of_link(&self) -> Option<f64> {
        let share = self.share_of_limit?;
        Some(match self.narrower {
            None => share,
            Some(_) => {
                share * self.payload_gbit_per_s()
                    / (self.link_gbit_per_s * self.protocol_efficiency)
            }
        })
    }
}

/// Throughput over the window, sampled about every 10 ms by the thread that controls the run, and less often in
/// long windows, to limit the samples. A missed sample is part of the next one, so the sum is the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Intended length of an interval, in seconds.
    pub interval_seconds: f64,
    /// End of each interval, in seconds from the start of the window.
    pub at_seconds: Vec<f64>,
    /// Messages whose completions were seen in each interval.
    pub messages: Vec<u64>,
    /// Longest time without a completion, in seconds; 0 if it is below 0.5 ms. Of several workers it may be more, by less than
    /// two intervals.
    pub longest_stall_seconds: Option<f64>,
}

/// Messages of each QP over the window, in intervals as long as those of `timeline` or longer. The sum of a QP is its
/// `messages` in `qps`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QpTimeline {
    /// Intended length of an interval, in seconds: 0.01, or a multiple of it.
    pub interval_seconds: f64,
    /// End of each interval, in seconds from the start of the window.
    pub at_seconds: Vec<f64>,
    /// For each QP, by index: messages whose completions were seen in each interval.
    pub messages: Vec<Vec<u64>>,
}

impl QpTimeline {
    /// QPs of which a node keeps this, in equal parts for the flows that it sends.
    pub const MOST_QPS: usize = 1024;

    /// Fewer intervals show nothing over time.
    pub const FEWEST_INTERVALS: usize = 8;
}

/// Writes a long array without line breaks, in a file that is otherwise written to be read by people.
///
/// # Errors
/// The serialiser's.
pub fn in_one_line<T: Serialize, S: Serializer>(figures: &[T], out: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(figures).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(out)
}

/// The time in which one end measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Length of the measurement window, in seconds; of a flow with `--start`, `--stop` or `--on` the time in it for which it
    /// was on. With several workers, whose windows may differ, it is the sum of their messages over the sum of their rates.
    pub seconds: f64,
    /// Length of the warm-up before the window, in seconds.
    pub warmup_seconds: f64,
    /// With `--warmup auto`: throughput was steady before the cap; `null` for a fixed warm-up.
    pub warmup_steady: Option<bool>,
    /// Reasons to doubt the figures of this window; empty if there are none.
    pub doubts: Vec<Doubt>,
}

impl Window {
    /// Whether it has a doubt of this kind.
    pub fn has_doubt(&self, kind: DoubtKind) -> bool {
        self.doubts.iter().any(|doubt| doubt.kind == kind)
    }
}

/// One reason to doubt the figures of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// What kind of reason it is.
    pub kind: DoubtKind,
    /// What was seen, with figures.
    pub message: String,
}

names! {
    /// What makes the figures of a window doubtful.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    DoubtKind {
        /// A quota of CPU time (`cpu.max`) stopped threads of a node for 2 % of the window or more, summed over CPUs.
        CpuQuota = "CPU quota",
        /// The window was at least 10 % longer or shorter than requested.
        WindowLength = "window length",
        /// The workers of the flow, at both ends, had less than 99 % of their windows together, or 95 % on the embedded device; or
        /// one of an open loop posted in the window what it had missed before.
        EdgeMissed = "edge missed",
        /// A worker of a closed loop was away for 1 % of the window or more, and posted nothing meanwhile.
        WorkerAway = "worker away",
        /// Throughput rose or fell through the window.
        Drift = "drift",
        /// The windows of the run's flows were not open at the same time.
        NotTogether = "not together",
        /// An open loop did not post its messages when they were planned.
        ScheduleNotKept = "schedule not kept",
    }
}

impl DoubtKind {
    /// Whether the run's rates may be wrong, so that no verdict stands on them. A drift is true of the run.
    pub fn spoils_rates(self) -> bool {
        !matches!(self, DoubtKind::Drift)
    }
}

/// The load of a flow whose messages have planned times (`--rate`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Requested messages a second, of all QPs together.
    pub asked_per_second: f64,
    /// Messages a second of the closed loop with the same settings; `null` if the requested rate is not a share of it.
    pub maximum_per_second: Option<f64>,
    /// Messages whose planned time is in the window.
    pub offered: u64,
    /// `offered` over the window's length.
    pub offered_per_second: f64,
    /// Messages that completed in the window, a second.
    pub achieved_per_second: f64,
    /// Messages of `offered` that were still not posted 1 s after the window. Only `latency_ns` has their wait until
    /// then.
    pub never_sent: u64,
    /// Messages of `offered` that had to wait because their QP's send queue was full. This wait is part of their
    /// latency.
    pub queue_full_messages: u64,
    /// Time in the window when messages waited for a full send queue, summed over the QPs.
    pub queue_full_seconds: f64,
    /// Latency, service and lateness are recorded for one message in so many, chosen at random; 1 records all.
    pub recorded_one_in: u64,
    /// The test of the times of posting; `null` if there were too few, and with `--arrivals fixed`.
    pub gaps: Option<Gaps>,
    /// Whether the schedule was kept.
    pub verdict: LoadVerdict,
    /// Why it was not kept; `null` if it was.
    pub not_kept_by: Option<NotKeptBy>,
}

/// The part of what was planned that may be missing.
const MISSING: f64 = 0.01;

/// Standard deviations of the backlog's walk that may be missing.
const DEVIATIONS: f64 = 4.0;

/// By how much service times of a device scatter about their mean, at most: the standard deviation as a part of it.
const SERVICE_DEVIATION: f64 = 0.25;

impl Load {
    /// Whether a flow is overloaded: of its `planned` messages, `missing` did not complete in the window, so its backlog grew
    /// by so many. If a server just keeps up with Poisson arrivals (load 1, fixed service times), its backlog is a random
    /// walk, and grows by more than four times the square root of its steps once in 15,000 windows; at any lower load less
    /// often. With fixed arrivals only service times make it walk, by smaller steps.
    pub fn is_overload(arrivals: Arrivals, planned: f64, missing: f64) -> bool {
        let deviation = match arrivals {
            Arrivals::Poisson => 1.0,
            Arrivals::Fixed => SERVICE_DEVIATION,
        };
        missing > (MISSING * planned).max(DEVIATIONS * deviation * planned.sqrt())
    }

    /// Of all flows together, with the worst verdict; `None` without a flow.
    pub(super) fn sum(loads: &[&Load]) -> Option<Load> {
        let sum = loads.iter().copied().cloned().reduce(|sum, load| Load {
            asked_per_second: sum.asked_per_second + load.asked_per_second,
            maximum_per_second: sum_of_two(sum.maximum_per_second, load.maximum_per_second),
            offered: sum.offered.saturating_add(load.offered),
            offered_per_second: sum.offered_per_second + load.offered_per_second,
            achieved_per_second: sum.achieved_per_second + load.achieved_per_second,
            never_sent: sum.never_sent.saturating_add(load.never_sent),
            queue_full_messages: sum.queue_full_messages.saturating_add(load.queue_full_messages),
            queue_full_seconds: sum.queue_full_seconds + load.queue_full_seconds,
            verdict: sum.verdict.max(load.verdict),
            not_kept_by: sum.not_kept_by.into_iter().chain(load.not_kept_by).min(),
            ..sum
        })?;
        Some(Load { gaps: None, ..sum })
    }
}

/// Anderson-Darling test of the gaps between posts. `messages` exponential gaps add up to a gap, so gaps should
/// have a gamma distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gaps {
    /// Messages in a gap; more than 1 if single gaps are too short to measure.
    pub messages_of_gap: u64,
    /// Number of gaps that were tested.
    pub samples: u64,
    /// Probability that gaps of the requested distribution deviate this much from it.
    pub p_value: f64,
}

names! {
    /// Whether an open loop kept its schedule, and whether its messages completed.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LoadVerdict {
        /// Messages were posted in time whenever their send queues had room.
        #[default]
        Kept = "kept",
        /// Messages were posted in time too, but too many did not complete in the window: more than 1 % of the planned ones,
        /// and more than four standard deviations of a Poisson count.
        Overloaded = "overloaded",
        /// The workers did not post in time: the figures are not those of the requested load.
        NotKept = "schedule not kept",
    }
}

names! {
    /// Why a schedule was not kept: the first that applies.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    NotKeptBy {
        /// Its workers did not have their cores for as large a part of the window as the flow fell short.
        Away = "workers away",
        /// More than 1 % of the messages were not posted in the window, though their send queues had room.
        NotPosted = "not posted",
        /// The times between posts do not have the requested distribution.
        Gaps = "gaps",
        /// Messages were posted so late that this would decide the median, p99 or p99.9 of latency, which are then `null`.
        Lateness = "lateness",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_length_has_no_rate() {
        assert_eq!((gbit_per_s(0, 0.0), mmsg_per_s(0, 0.0)), (None, None));
    }
}
