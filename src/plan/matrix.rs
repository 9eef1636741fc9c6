//! The product of all lists: each cell is a case with a name of its own.
//!
//! Order, outermost first: op, CQ mode, size, QPs, QPs with traffic, workers, tx depth, rx depth, signalling, post
//! list, inline, MTU, polling, connecting; within each, as the list was given. So a table reads downwards as scaling over
//! QPs, size by size. What cannot matter to an operation makes no cases: rx depth for WRITE and READ,
//! inline for READ, QPs with traffic where no set-up is measured, and settings of traffic where there is none.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use super::case::{Case, ConnectMode, CqMode, Mtu, Op, PollMode, SetUp};
use super::checked::checked;
use super::common::Common;
use super::error::PlanError;
use super::limits;
use super::workload::Workload;
use super::{Count, List, Size, SweepSpec};

/// Every list with its defaults filled in.
pub(super) struct Axes {
    op: Vec<Workload>,
    cq: Vec<CqMode>,
    size: Vec<u32>,
    qps: Vec<u32>,
    traffic_qps: Vec<u32>,
    workers: Vec<u32>,
    tx_depth: Vec<u32>,
    rx_depth: Vec<u32>,
    /// `None` is the default for the case's size.
    signal_every: Vec<Option<u32>>,
    post_list: Vec<u32>,
    inline: Vec<u32>,
    mtu: Vec<Option<Mtu>>,
    poll: Vec<PollMode>,
    connect: Vec<ConnectMode>,
}

const DEFAULT_SIZE_BYTES: u64 = 65_536;
const DEFAULT_QPS: u64 = 1;
const DEFAULT_TRAFFIC_QPS: u64 = 1;
const DEFAULT_WORKERS: u64 = 1;
const DEFAULT_TX_DEPTH: u64 = 128;
const DEFAULT_RX_DEPTH: u64 = 512;
const DEFAULT_POST_LIST: u64 = 1;

fn axis(
    flag: &'static str,
    list: Option<&List<Count>>,
    default: u64,
    range: &RangeInclusive<u64>,
) -> Result<Vec<u32>, PlanError> {
    match list {
        Some(list) => list
            .items()
            .iter()
            .map(|count| checked(flag, count.0, range))
            .collect(),
        None => Ok(vec![checked(flag, default, range)?]),
    }
}

fn size_axis(
    flag: &'static str,
    list: Option<&List<Size>>,
    default: u64,
    range: &RangeInclusive<u64>,
) -> Result<Vec<u32>, PlanError> {
    match list {
        Some(list) => list
            .items()
            .iter()
            .map(|size| checked(flag, size.bytes().into(), range))
            .collect(),
        None => Ok(vec![checked(flag, default, range)?]),
    }
}

impl Axes {
    pub(super) fn new(spec: &SweepSpec) -> Result<Axes, PlanError> {
        let axes = Axes {
            op: spec.op.as_ref().map_or_else(
                || vec![Workload::Transfer(Op::Send)],
                |list| list.items().to_vec(),
            ),
            cq: spec
                .cq
                .as_ref()
                .map_or_else(|| vec![CqMode::Shared], |list| list.items().to_vec()),
            size: size_axis(
                "size",
                spec.size.as_ref(),
                DEFAULT_SIZE_BYTES,
                &limits::SIZE_BYTES,
            )?,
            qps: axis("qps", spec.qps.as_ref(), DEFAULT_QPS, &limits::QPS)?,
            traffic_qps: axis(
                "traffic-qps",
                spec.traffic_qps.as_ref(),
                DEFAULT_TRAFFIC_QPS,
                &limits::TRAFFIC_QPS,
            )?,
            workers: axis(
                "workers",
                spec.workers.as_ref(),
                DEFAULT_WORKERS,
                &limits::WORKERS,
            )?,
            tx_depth: axis(
                "tx-depth",
                spec.tx_depth.as_ref(),
                DEFAULT_TX_DEPTH,
                &limits::DEPTH,
            )?,
            rx_depth: axis(
                "rx-depth",
                spec.rx_depth.as_ref(),
                DEFAULT_RX_DEPTH,
                &limits::DEPTH,
            )?,
            signal_every: match &spec.signal_every {
                Some(list) => axis("signal-every", Some(list), 1, &limits::DEPTH)?
                    .into_iter()
                    .map(Some)
                    .collect(),
                None => vec![None],
            },
            post_list: axis(
                "post-list",
                spec.post_list.as_ref(),
                DEFAULT_POST_LIST,
                &limits::DEPTH,
            )?,
            inline: size_axis("inline", spec.inline.as_ref(), 0, &limits::INLINE_BYTES)?,
            mtu: match &spec.mtu {
                Some(list) => list.items().iter().copied().map(Some).collect(),
                None => vec![None],
            },
            poll: spec
                .poll
                .as_ref()
                .map_or_else(|| vec![PollMode::Busy], |list| list.items().to_vec()),
            connect: spec
                .connect
                .as_ref()
                .map_or_else(|| vec![ConnectMode::Tcp], |list| list.items().to_vec()),
        };
        if axes.op.iter().all(|op| *op == Workload::Transfer(Op::Read))
            && let Some(inline_bytes) = axes.inline.iter().copied().find(|bytes| *bytes > 0)
        {
            return Err(PlanError::InlineOnRead {
                inline_bytes: inline_bytes.into(),
            });
        }
        axes.check_connect(spec)?;
        Ok(axes)
    }

    /// What has no effect where set-up is measured alone, or cannot be had with it, is refused by name.
    fn check_connect(&self, spec: &SweepSpec) -> Result<(), PlanError> {
        let given = |flag: bool, name: &'static str| flag.then_some(name);
        let connects = self.op.contains(&Workload::Connect);
        if !connects {
            return match spec.traffic_qps {
                Some(_) => Err(PlanError::TrafficWithoutConnect),
                None => Ok(()),
            };
        }
        if let Some(flag) = given(spec.verify == Some(true), "verify")
            .or(given(spec.bidirectional == Some(true), "bidirectional"))
        {
            return Err(PlanError::NotWithConnect { flag });
        }
        if self.op.iter().any(|op| *op != Workload::Connect) {
            return Ok(());
        }
        if spec.rx_depth.is_some() {
            return Err(PlanError::NoEffectOnConnect {
                flag: "rx-depth",
                why: "its traffic is RDMA WRITEs, which need no receive",
            });
        }
        let without_traffic = self.traffic_qps.iter().all(|qps| *qps == 0);
        let of_traffic = given(spec.size.is_some(), "size")
            .or(given(spec.cq.is_some(), "cq"))
            .or(given(spec.poll.is_some(), "poll"))
            .or(given(spec.workers.is_some(), "workers"))
            .or(given(spec.tx_depth.is_some(), "tx-depth"))
            .or(given(spec.signal_every.is_some(), "signal-every"))
            .or(given(spec.post_list.is_some(), "post-list"))
            .or(given(spec.inline.is_some(), "inline"))
            .or(given(spec.cq_depth.is_some(), "cq-depth"))
            .or(given(spec.no_latency.is_some(), "no-latency"));
        match of_traffic {
            Some(flag) if without_traffic => Err(PlanError::NoEffectOnConnect {
                flag,
                why: "it is a setting of the traffic, and with --traffic-qps 0 there is none",
            }),
            _ => Ok(()),
        }
    }

    /// Of the cases without traffic, which its settings do not tell apart, the first.
    fn is_first_traffic(&self, case: &Case, signal_every: Option<u32>) -> bool {
        self.cq.first() == Some(&case.cq)
            && self.size.first() == Some(&case.size_bytes)
            && self.workers.first() == Some(&case.workers)
            && self.tx_depth.first() == Some(&case.tx_depth)
            && self.signal_every.first() == Some(&signal_every)
            && self.post_list.first() == Some(&case.post_list)
            && self.inline.first() == Some(&case.inline_bytes)
            && self.poll.first() == Some(&case.poll)
    }

    fn lengths(&self) -> [(&'static str, usize); 14] {
        [
            ("op", self.op.len()),
            ("cq", self.cq.len()),
            ("size", self.size.len()),
            ("qps", self.qps.len()),
            ("traffic-qps", self.traffic_qps.len()),
            ("workers", self.workers.len()),
            ("tx-depth", self.tx_depth.len()),
            ("rx-depth", self.rx_depth.len()),
            ("signal-every", self.signal_every.len()),
            ("post-list", self.post_list.len()),
            ("inline", self.inline.len()),
            ("mtu", self.mtu.len()),
            ("poll", self.poll.len()),
            ("connect", self.connect.len()),
        ]
    }

    /// How many cells the product has.
    pub(super) fn cells(&self) -> Result<u64, PlanError> {
        let lengths = self.lengths();
        let cases = lengths.iter().fold(1u64, |product, (_, length)| {
            product.saturating_mul(u64::try_from(*length).unwrap_or(u64::MAX))
        });
        if cases > limits::CASES {
            let longest = lengths
                .iter()
                .max_by_key(|(_, length)| *length)
                .map_or("qps", |(flag, _)| flag);
            return Err(PlanError::TooManyCases { cases, longest });
        }
        Ok(cases)
    }

    /// The cell number `index`, or nothing if its case is another cell's case too.
    pub(super) fn case(&self, index: u64, common: &Common) -> Option<Case> {
        let mut rest = index;
        let connect = pick(&mut rest, &self.connect)?;
        let poll = pick(&mut rest, &self.poll)?;
        let mtu = pick(&mut rest, &self.mtu)?;
        let inline = pick(&mut rest, &self.inline)?;
        let post_list = pick(&mut rest, &self.post_list)?;
        let asked_signal_every = pick(&mut rest, &self.signal_every)?;
        let rx_depth = pick(&mut rest, &self.rx_depth)?;
        let tx_depth = pick(&mut rest, &self.tx_depth)?;
        let workers = pick(&mut rest, &self.workers)?;
        let traffic_qps = pick(&mut rest, &self.traffic_qps)?;
        let qps = pick(&mut rest, &self.qps)?;
        let size_bytes = pick(&mut rest, &self.size)?;
        let cq = pick(&mut rest, &self.cq)?;
        let workload = pick(&mut rest, &self.op)?;
        let op = workload.op();
        let setup = (workload == Workload::Connect).then_some(SetUp { traffic_qps });

        let repeats_rx_depth = op != Op::Send && self.rx_depth.first() != Some(&rx_depth);
        let repeats_inline = op == Op::Read && self.inline.first() != Some(&inline);
        let repeats_traffic_qps = setup.is_none() && self.traffic_qps.first() != Some(&traffic_qps);
        if repeats_rx_depth || repeats_inline || repeats_traffic_qps {
            return None;
        }
        let usual_signal_every = default_signal_every(size_bytes, tx_depth, post_list);
        let mut case = Case {
            id: String::new(),
            op,
            cq,
            poll,
            connect,
            qps,
            size_bytes,
            tx_depth,
            rx_depth,
            signal_every: asked_signal_every.unwrap_or(usual_signal_every),
            post_list,
            inline_bytes: if op == Op::Read { 0 } else { inline },
            workers,
            mtu,
            bidirectional: common.bidirectional,
            stop: common.stop,
            warmup: common.warmup,
            verify: common.verify,
            latency: common.latency,
            cq_depth: common.cq_depth,
            transport: common.transport,
            setup,
        };
        if setup == Some(SetUp { traffic_qps: 0 })
            && !self.is_first_traffic(&case, asked_signal_every)
        {
            return None;
        }
        case.id = self.id(&case, usual_signal_every);
        Some(case)
    }

    /// `send-shared-q16-64KiB`, and then, with its flag's letter, each setting that varies within
    /// the sweep or is not the default.
    fn id(&self, case: &Case, usual_signal_every: u32) -> String {
        let size = Size::from_bytes(case.size_bytes).unwrap_or(Size::MAX);
        let mut id = match case.setup {
            Some(SetUp { traffic_qps: 0 }) => format!("{}-q{}", case.workload(), case.qps),
            _ => format!("{}-{}-q{}-{size}", case.workload(), case.cq, case.qps),
        };
        let mut add = |letter: char, value: u32, default: u64, varies: bool| {
            if varies || u64::from(value) != default {
                // Writing to a String cannot fail.
                let _ = write!(id, "-{letter}{value}");
            }
        };
        let send = case.op == Op::Send;
        let read = case.op == Op::Read;
        if let Some(SetUp { traffic_qps }) = case.setup {
            add(
                'T',
                traffic_qps,
                DEFAULT_TRAFFIC_QPS,
                self.traffic_qps.len() > 1,
            );
            if traffic_qps == 0 {
                if let Some(mtu) = case.mtu {
                    add('m', mtu.bytes(), 0, true);
                }
                name_connect(&mut id, case);
                return id;
            }
        }
        add('w', case.workers, DEFAULT_WORKERS, self.workers.len() > 1);
        add(
            't',
            case.tx_depth,
            DEFAULT_TX_DEPTH,
            self.tx_depth.len() > 1,
        );
        if send {
            add(
                'r',
                case.rx_depth,
                DEFAULT_RX_DEPTH,
                self.rx_depth.len() > 1,
            );
        }
        add(
            'Q',
            case.signal_every,
            usual_signal_every.into(),
            self.signal_every.len() > 1,
        );
        add(
            'l',
            case.post_list,
            DEFAULT_POST_LIST,
            self.post_list.len() > 1,
        );
        add('I', case.inline_bytes, 0, !read && self.inline.len() > 1);
        if let Some(mtu) = case.mtu {
            add('m', mtu.bytes(), 0, true);
        }
        if case.bidirectional {
            id.push_str("-b");
        }
        if case.poll != PollMode::Busy {
            let _ = write!(id, "-{}", case.poll);
        }
        name_connect(&mut id, case);
        id
    }
}

fn name_connect(id: &mut String, case: &Case) {
    if case.connect != ConnectMode::Tcp {
        let _ = write!(id, "-{}", case.connect);
    }
}

/// The next digit of a number whose base is the list's length.
fn pick<T: Copy>(rest: &mut u64, list: &[T]) -> Option<T> {
    let length = u64::try_from(list.len())
        .ok()
        .filter(|length| *length > 0)?;
    let index = usize::try_from(*rest % length).ok()?;
    *rest /= length;
    list.get(index).copied()
}

/// CQ moderation when none is asked for, made to fit the send queue and the posted lists.
///
/// 1 above 8192 bytes. Else the largest number up to 64 of which the send queue holds a whole number, and two at
/// least: each completion then frees as much as it stands for, and the message that it times waited behind a full
/// queue as all do. With lists it is a multiple of `post_list`, or one completion a list where there is none.
fn default_signal_every(size_bytes: u32, tx_depth: u32, post_list: u32) -> u32 {
    if size_bytes > limits::MODERATED_SIZE_BYTES {
        return 1;
    }
    let step = post_list.max(1);
    let most = limits::DEFAULT_SIGNAL_EVERY.min(tx_depth / 2);
    (step..=most)
        .rev()
        .filter(|every| every.is_multiple_of(step))
        .find(|every| tx_depth.is_multiple_of(*every))
        .unwrap_or(step)
}
