//! A whole sweep: the ordered cases of the matrix, all of them checked, and how often each is run.

use std::time::Duration;

use super::case::{Case, CqMode, Op, Stop};
use super::checked::{checked, scalar};
use super::common::Common;
use super::error::PlanError;
use super::limits;
use super::matrix::Axes;
use super::{SweepSpec, TimeSpan};

/// Cases in the order in which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// At least one; ids are unique.
    pub cases: Vec<Case>,
    /// How often each case is run.
    pub runs: u32,
}

fn check(case: &Case) -> Result<(), PlanError> {
    if case.setup.is_some() {
        for (flag, is_set) in [
            ("verify", case.verify),
            ("bidirectional", case.bidirectional),
        ] {
            if is_set {
                return Err(PlanError::NotWithConnect { flag });
            }
        }
        return case.moving().as_ref().map_or(Ok(()), check);
    }
    for (flag, value) in [
        ("signal-every", case.signal_every),
        ("post-list", case.post_list),
    ] {
        if value > case.tx_depth {
            return Err(PlanError::BatchTooDeep {
                flag,
                value,
                tx_depth: case.tx_depth,
                case: case.id.clone(),
            });
        }
    }
    if case.post_list > case.signal_every && !case.post_list.is_multiple_of(case.signal_every) {
        return Err(PlanError::ListDoesNotFit {
            post_list: case.post_list,
            signal_every: case.signal_every,
            case: case.id.clone(),
        });
    }
    let qps_of_a_cq = match case.cq {
        CqMode::Shared => case.qps,
        CqMode::PerWorker => case.qps.div_ceil(case.workers),
        CqMode::PerQp => 1,
    };
    let receives = if case.op == Op::Send {
        case.rx_depth
    } else {
        0
    };
    let entries = u64::from(qps_of_a_cq) * (u64::from(case.tx_depth) + u64::from(receives));
    if case.cq_depth.is_none() && entries > *limits::CQ_DEPTH.end() {
        return Err(PlanError::CqTooLarge {
            entries,
            case: case.id.clone(),
        });
    }
    Ok(())
}

impl Sweep {
    /// Every case that `spec` asks for, with defaults where it says nothing.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn new(spec: &SweepSpec) -> Result<Sweep, PlanError> {
        let runs = scalar("runs", spec.runs, 1, &limits::RUNS)?;
        let common = Common::new(spec)?;
        let axes = Axes::new(spec)?;
        let cases: Vec<Case> = (0..axes.cells()?)
            .filter_map(|index| axes.case(index, &common))
            .collect();
        cases.iter().try_for_each(check)?;
        Ok(Sweep { cases, runs })
    }

    /// Checks a case that came from somewhere else than a plan, such as a peer: every range, and what
    /// settings mean together.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn check(case: &Case) -> Result<(), PlanError> {
        let transport = &case.transport;
        for (flag, value, range) in [
            ("qps", u64::from(case.qps), &limits::QPS),
            ("size", case.size_bytes.into(), &limits::SIZE_BYTES),
            ("tx-depth", case.tx_depth.into(), &limits::DEPTH),
            ("rx-depth", case.rx_depth.into(), &limits::DEPTH),
            ("signal-every", case.signal_every.into(), &limits::DEPTH),
            ("post-list", case.post_list.into(), &limits::DEPTH),
            ("inline", case.inline_bytes.into(), &limits::INLINE_BYTES),
            ("workers", case.workers.into(), &limits::WORKERS),
            ("timeout", transport.timeout.into(), &limits::TIMEOUT),
            ("retry-cnt", transport.retry_cnt.into(), &limits::RETRIES),
            ("rnr-retry", transport.rnr_retry.into(), &limits::RETRIES),
            (
                "min-rnr-timer",
                transport.min_rnr_timer.into(),
                &limits::MIN_RNR_TIMER,
            ),
            (
                "service-level",
                transport.service_level.into(),
                &limits::SERVICE_LEVEL,
            ),
        ] {
            checked::<u64>(flag, value, range)?;
        }
        if let Some(setup) = case.setup {
            checked::<u64>(
                "traffic-qps",
                setup.traffic_qps.into(),
                &limits::TRAFFIC_QPS,
            )?;
        }
        if let Some(entries) = case.cq_depth {
            checked::<u64>("cq-depth", entries.into(), &limits::CQ_DEPTH)?;
        }
        if let Some(reads) = transport.max_rd_atomic {
            checked::<u64>("max-rd-atomic", reads.into(), &limits::MAX_RD_ATOMIC)?;
        }
        match case.stop {
            Stop::DurationNs(0) => return Err(PlanError::NoDuration),
            Stop::DurationNs(_) => {}
            Stop::MessagesPerQp(messages) => {
                checked::<u64>("iters", messages, &limits::ITERS)?;
            }
        }
        check(case)
    }

    /// The most workers that any case has.
    pub fn max_workers(&self) -> u32 {
        self.cases
            .iter()
            .map(|case| case.workers)
            .max()
            .unwrap_or(0)
    }

    /// The longest that all runs' warm-ups and measurements take together, connecting and draining
    /// not counted; `None` when runs end after a number of messages.
    pub fn longest(&self) -> Option<Duration> {
        let one_round =
            self.cases
                .iter()
                .try_fold(Duration::ZERO, |sum, case| match case.stop {
                    Stop::DurationNs(ns) => Some(
                        sum.saturating_add(case.warmup.longest())
                            .saturating_add(Duration::from_nanos(ns)),
                    ),
                    Stop::MessagesPerQp(_) => None,
                })?;
        Some(one_round.saturating_mul(self.runs))
    }

    /// The span of a case's measurement, for people.
    pub fn stop_text(case: &Case) -> String {
        match case.stop {
            Stop::MessagesPerQp(rounds) if case.setup.is_some() => format!("{rounds} rounds"),
            Stop::DurationNs(ns) => TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX).to_string(),
            Stop::MessagesPerQp(messages) => format!("{messages} messages a QP"),
        }
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
