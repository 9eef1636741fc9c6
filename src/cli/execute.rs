//! Hands a finished plan to the engine. Nothing is parsed or validated here.

use super::errors::Failure;
use super::run::RunPlan;
use super::serve::ServePlan;

/// Runs the sweep.
///
/// # Errors
/// What stopped it.
#[allow(clippy::needless_pass_by_value)]
pub fn execute(plan: RunPlan) -> Result<(), Failure> {
    let cases = plan.sweep.cases.len();
    Err(Failure::failed(format!(
        "cannot run {cases} cases: this build has no engine"
    )))
}

/// Serves sweeps.
///
/// # Errors
/// What stopped it.
#[allow(clippy::needless_pass_by_value)]
pub fn serve(plan: ServePlan) -> Result<(), Failure> {
    Err(Failure::failed(format!(
        "cannot serve on port {}: this build has no engine",
        plan.port
    )))
}
