//! A whole sweep: the ordered cases of the matrix, all of them checked, and how often each is run.

use std::time::Duration;

use settings::{CqMode, Given, ROWS, Settings, Stop};

use super::case::Case;
use super::error::PlanError;
use super::matrix::Axes;

/// Entries of a CQ: `ibv_create_cq(3)` takes a C `int`.
const MOST_CQ_ENTRIES: u64 = i32::MAX as u64;

/// Cases in the order in which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// At least one; ids are unique.
    pub cases: Vec<Case>,
}

/// What settings mean together.
fn check(case: &Case) -> Result<(), PlanError> {
    match (case.iterations_per_qp, case.duration_seconds) {
        (Some(_), Some(_)) => return Err(PlanError::TwoStops),
        (None, span) if span.is_none_or(|span| span.ns() == 0) => {
            return Err(PlanError::NoDuration);
        }
        _ => {}
    }
    if case.is_set_up() {
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
    let receives = match case.op.profile().receives {
        true => case.rx_depth,
        false => 0,
    };
    let entries = u64::from(qps_of_a_cq) * (u64::from(case.tx_depth) + u64::from(receives));
    if case.cq_depth.is_none() && entries > MOST_CQ_ENTRIES {
        return Err(PlanError::CqTooLarge {
            entries,
            case: case.id.clone(),
        });
    }
    Ok(())
}

impl Sweep {
    /// Every case that was asked for, with defaults where nothing was.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn new(given: &Given) -> Result<Sweep, PlanError> {
        if given.has_two_ends() {
            return Err(PlanError::TwoStops);
        }
        let cases = Axes::new(given)?.cases()?;
        cases.iter().try_for_each(check)?;
        Ok(Sweep { cases })
    }

    /// Checks a case that came from somewhere else than a plan, such as a peer: every range, and what
    /// settings mean together.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn check(case: &Case) -> Result<(), PlanError> {
        let mut scratch = Settings::default();
        for row in ROWS {
            row.read(&mut scratch, &row.text(case))?;
        }
        check(case)
    }

    /// How often each case is run.
    pub fn runs(&self) -> u32 {
        self.cases.first().map_or(1, |case| case.runs)
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
                .try_fold(Duration::ZERO, |sum, case| match case.stop() {
                    Stop::DurationNs(ns) => Some(
                        sum.saturating_add(case.warmup.longest())
                            .saturating_add(Duration::from_nanos(ns)),
                    ),
                    Stop::MessagesPerQp(_) => None,
                })?;
        Some(one_round.saturating_mul(self.runs()))
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
