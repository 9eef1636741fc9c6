//! What a flow moved: rates, QPs, and the link's limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::FlowConfig;
use super::distribution::{Bandwidth, Latency};
use super::load::{Load, LoadVerdict};
use super::window::{QpTimeline, Timeline, Window};
use crate::rates;
use statistics::{is_starved, shares};

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
    /// Each QP.
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
        let count = |of: fn(&Totals) -> u64| rates::sum(flows.iter().map(|flow| of(&flow.totals)));
        let rate = |of: fn(&Totals) -> Option<f64>| {
            flows
                .iter()
                .map(|flow| of(&flow.totals))
                .sum::<Option<f64>>()
                .filter(|_| !flows.is_empty())
        };
        let rates: Option<Vec<f64>> = flows.iter().map(FlowResult::gbit_per_s).collect();
        let loads: Option<Vec<&Load>> = flows.iter().map(|flow| flow.load.as_ref()).collect();
        FlowResult {
            totals: Totals {
                messages: count(|totals| totals.messages),
                bytes: count(|totals| totals.bytes),
                gbit_per_s: rate(|totals| totals.gbit_per_s),
                mmsg_per_s: rate(|totals| totals.mmsg_per_s),
                errors: count(|totals| totals.errors),
            },
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

/// What all QPs moved together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
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
            gbit_per_s: rates::gbit_per_s(bytes, seconds),
            mmsg_per_s: rates::mmsg_per_s(messages, seconds),
            errors,
        }
    }
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

    /// How evenly the bytes of these QPs were shared. Each was to get `asked` of an even share, and completions come for so
    /// many messages together.
    pub fn of_qps(
        qps: &[QpResult],
        asked: &[f64],
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
                .zip(asked)
                .filter_map(|(qp, asked)| {
                    let share = qp.bytes as f64 / (even_bytes * asked);
                    let completions = qp.messages.div_ceil(together.into());
                    let is_starved =
                        share < 0.5 && is_starved(completions, even_completions * asked, qps.len());
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
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
    pub gbit_per_s: Option<f64>,
    /// Its latencies, in nanoseconds; `null` when off or without a sample.
    pub latency_ns: Option<Latency>,
    /// Open loop: from the post until the worker sees the completion, in nanoseconds.
    pub service_ns: Option<Latency>,
    /// Open loop: how late messages were posted although its send queue had room, in nanoseconds.
    pub lateness_ns: Option<Latency>,
    /// Compare-swap: how many of `messages` exchanged the value; the others found another. `null` for other operations.
    pub swaps_made: Option<u64>,
    /// Over UC and UD: messages of this QP that did not come, in the whole run. `null` if `delivery` is, and if a UD QP
    /// sends to all QPs, since a receive does not show the sending QP.
    pub lost: Option<u64>,
}

/// What the node at the other end received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Messages received.
    pub messages: u64,
    /// Payload bytes of them.
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
    /// Messages that did not come.
    pub lost: u64,
    /// `lost` over `sent`; 0 where nothing was sent.
    pub lost_share: f64,
    /// Payload throughput received in the window; `totals` count what was sent. `null` without a window.
    pub goodput_gbit_per_s: Option<f64>,
    /// Rate of those messages, in 10^6 a second.
    pub goodput_mmsg_per_s: Option<f64>,
}

impl Delivery {
    /// Of what was sent and received on each QP, without goodput.
    pub fn of_qps(sent: &[u64], received: &[u64]) -> Delivery {
        let all = rates::sum(sent.iter().copied());
        let lost = rates::sum(Delivery::lost_of_qps(sent, received));
        Delivery {
            sent: all,
            received: rates::sum(received.iter().copied()),
            lost,
            lost_share: Delivery::share(lost, all),
            ..Delivery::default()
        }
    }

    /// Messages that did not come, of each QP; the network may double one.
    pub fn lost_of_qps(sent: &[u64], received: &[u64]) -> impl Iterator<Item = u64> {
        sent.iter().zip(received).map(|(sent, received)| sent.saturating_sub(*received))
    }

    /// Of all flows together; `None` if one has no such count.
    pub fn of_flows(flows: &[FlowResult]) -> Option<Delivery> {
        let told: Option<Vec<&Delivery>> =
            flows.iter().map(|flow| flow.delivery.as_ref()).collect();
        let told = told.filter(|told| !told.is_empty())?;
        let count = |of: fn(&Delivery) -> u64| rates::sum(told.iter().map(|it| of(it)));
        let rate = |of: fn(&Delivery) -> Option<f64>| told.iter().map(|it| of(it)).sum();
        let (sent, lost) = (count(|it| it.sent), count(|it| it.lost));
        Some(Delivery {
            sent,
            received: count(|it| it.received),
            lost,
            lost_share: Delivery::share(lost, sent),
            goodput_gbit_per_s: rate(|it| it.goodput_gbit_per_s),
            goodput_mmsg_per_s: rate(|it| it.goodput_mmsg_per_s),
        })
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
    /// Speed of the link, headers and gaps included.
    pub link_gbit_per_s: f64,
    /// Payload bytes over all bytes on the wire, 0 to 1.
    pub protocol_efficiency: f64,
    /// Payload throughput (over UC and UD the received one) over `link_gbit_per_s` × `protocol_efficiency`; `null` without a
    /// throughput.
    pub share_of_limit: Option<f64>,
}

impl Limits {
    /// What `share_of_limit` is of a payload throughput; `None` for a link without a speed.
    pub fn share_of(&self, gbit_per_s: f64) -> Option<f64> {
        let bound_gbit_per_s = self.link_gbit_per_s * self.protocol_efficiency;
        (bound_gbit_per_s > 0.0).then(|| gbit_per_s / bound_gbit_per_s)
    }
}
