//! Which calls of libibverbs fit what a flow does with them.

use settings::{CallStyle, CqMode, Domains, Settings, Timestamps};

use super::error::PlanError;

/// What the calls of `flow` mean together with the rest of it, in the case of this id.
///
/// # Errors
/// The setting that does not fit, and why.
pub(super) fn check_calls(case: &str, flow: &Settings) -> Result<(), PlanError> {
    let misfit = |flag, why: String| {
        Err(PlanError::Misfit {
            flag,
            why,
            case: case.to_owned(),
        })
    };
    let is_stamped = flow.timestamps == Timestamps::Device;
    if is_stamped && flow.poll_api == CallStyle::Legacy {
        let why = "ibv_poll_cq reports no time stamps, and the case has --poll-api legacy";
        return misfit("timestamps", why.into());
    }
    if is_stamped && flow.no_latency {
        let why = "time stamps end latencies, and the case has --no-latency";
        return misfit("timestamps", why.into());
    }
    if flow.domains == Domains::Thread && flow.cq == CqMode::Shared && flow.workers > 1 {
        let workers = flow.workers;
        let why = format!(
            "one thread may use each QP and CQ, and the case has --cq shared for {workers} workers"
        );
        return misfit("domains", why);
    }
    Ok(())
}
