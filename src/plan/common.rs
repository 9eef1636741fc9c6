//! The settings of a sweep that are the same in every case of it, with their defaults.

use super::SweepSpec;
use super::case::{Stop, Transport, Warmup};
use super::checked::{checked, optional, scalar};
use super::error::PlanError;
use super::limits;

const DEFAULT_DURATION_NS: u64 = 5_000_000_000;

/// What is the same in every case.
pub(super) struct Common {
    pub(super) bidirectional: bool,
    pub(super) stop: Stop,
    pub(super) warmup: Warmup,
    pub(super) verify: bool,
    pub(super) latency: bool,
    pub(super) cq_depth: Option<u32>,
    pub(super) transport: Transport,
}

impl Common {
    /// What `spec` says, with defaults filled in.
    ///
    /// # Errors
    /// A number out of its range, or settings that exclude each other.
    pub(super) fn new(spec: &SweepSpec) -> Result<Common, PlanError> {
        let stop = match (spec.duration, spec.iters) {
            (Some(_), Some(_)) => return Err(PlanError::TwoStops),
            (Some(span), None) if span.ns() == 0 => return Err(PlanError::NoDuration),
            (Some(span), None) => Stop::DurationNs(span.ns()),
            (None, Some(iters)) => Stop::MessagesPerQp(checked("iters", iters.0, &limits::ITERS)?),
            (None, None) => Stop::DurationNs(DEFAULT_DURATION_NS),
        };
        let usual = Transport::default();
        Ok(Common {
            bidirectional: spec.bidirectional.unwrap_or(false),
            stop,
            warmup: spec.warmup.unwrap_or_default(),
            verify: spec.verify.unwrap_or(false),
            latency: !spec.no_latency.unwrap_or(false),
            cq_depth: optional("cq-depth", spec.cq_depth, &limits::CQ_DEPTH)?,
            transport: Transport {
                timeout: scalar("timeout", spec.timeout, usual.timeout, &limits::TIMEOUT)?,
                retry_cnt: scalar(
                    "retry-cnt",
                    spec.retry_cnt,
                    usual.retry_cnt,
                    &limits::RETRIES,
                )?,
                rnr_retry: scalar(
                    "rnr-retry",
                    spec.rnr_retry,
                    usual.rnr_retry,
                    &limits::RETRIES,
                )?,
                min_rnr_timer: scalar(
                    "min-rnr-timer",
                    spec.min_rnr_timer,
                    usual.min_rnr_timer,
                    &limits::MIN_RNR_TIMER,
                )?,
                max_rd_atomic: optional(
                    "max-rd-atomic",
                    spec.max_rd_atomic,
                    &limits::MAX_RD_ATOMIC,
                )?,
                service_level: scalar(
                    "service-level",
                    spec.service_level,
                    usual.service_level,
                    &limits::SERVICE_LEVEL,
                )?,
                traffic_class: scalar(
                    "traffic-class",
                    spec.traffic_class,
                    usual.traffic_class,
                    &limits::TRAFFIC_CLASS,
                )?,
                hop_limit: usual.hop_limit,
            },
        })
    }
}
