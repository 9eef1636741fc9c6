//! A whole sweep checked against the devices and the memory of both ends, before its first run.

use std::sync::atomic::AtomicBool;

use crate::node::connect_cm::check_port;
use crate::node::memory_needs::{MemoryNeeds, described};
use crate::node::needs::{Side, check_posts};
use crate::node::resources::NodeResources;
use crate::plan::Case;
use crate::plan::Sweep;
use crate::protocol::device_limits::DeviceLimits;
use crate::protocol::failure::RunFailure;
use crate::protocol::memory_offer::MemoryOffer;
use crate::protocol::message::Message;
use crate::protocol::time_limits::ANSWER_LIMIT;
use settings::ConnectMode;
use verbs::cm::CmChannel;

use super::options::SweepOptions;
use super::session::Session;

/// Checks all cases of a sweep against the devices and the memory of both ends.
///
/// # Errors
/// The first case that either cannot do, by name; or the server does not answer.
pub(crate) fn check_sweep(
    sweep: &Sweep,
    session: &Session,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let link = &session.link;
    link.send(&Message::AskLimits)?;
    let (theirs, their_memory) = match link.recv(ANSWER_LIMIT, stop)? {
        Message::Limits { device, memory } => (*device, memory),
        other => return Err(link.unexpected("limits", &other).into()),
    };
    let ours = DeviceLimits::of(session.resources.port());
    let ends = [
        (ours, Side::Client, ""),
        (theirs, Side::Server, "at the server: "),
    ];
    for (limits, side, whose) in &ends {
        for case in &sweep.cases {
            limits.check(case, *side).map_err(|error| RunFailure {
                message: format!("{}: {whose}{error}", case.id),
                ..RunFailure::from_verbs(&error)
            })?;
        }
    }
    check_memory(sweep, session, &their_memory)
}

/// Checks that both ends have memory for each case, and can tell each other what it comes to.
///
/// # Errors
/// Bad input: as for a run, for the largest case.
fn check_memory(sweep: &Sweep, session: &Session, theirs: &MemoryOffer) -> Result<(), RunFailure> {
    sweep.cases.iter().try_for_each(check_posts)?;
    let ours = MemoryOffer::of(&session.resources);
    let shared = session.link.is_within_host();
    let beside = shared.then_some(theirs.device);
    if let Some((case, needs)) = MemoryNeeds::of_sweep(sweep, ours.device, beside) {
        let ends = if shared { " at both ends" } else { "" };
        ours.check(&(described(case, Side::Client) + ends), &needs)?;
    }
    let of_server = |case| (MemoryNeeds::of(case, Side::Server, theirs.device), case);
    let largest = sweep.cases.iter().map(of_server);
    match largest.max_by_key(|(needs, _)| needs.total()) {
        Some((needs, case)) => theirs.check(&described(case, Side::Server), &needs),
        None => Ok(()),
    }
}

/// Before a device is looked for: `--faults` is for one that rdma_cm does not serve.
///
/// # Errors
/// Both were asked for.
pub(crate) fn check_faults(options: &SweepOptions) -> Result<(), RunFailure> {
    if options.ends.resources.request.faults.is_none() || !any_by_cm(&options.sweep.cases) {
        return Ok(());
    }
    Err(RunFailure::refused(
        "--faults is for the embedded software device, which has no connection manager for --connect cm".to_owned(),
        "leave one of them out; below Soft-RoCE, `tc qdisc add dev ETH root netem loss 1%` loses packets",
    ))
}

/// Before a sweep bothers its peer: whether this end can do what its cases ask for.
///
/// # Errors
/// The port, the kernel or this system's libraries cannot.
pub(crate) fn check_cm(
    options: &SweepOptions,
    resources: &NodeResources,
) -> Result<(), RunFailure> {
    if !any_by_cm(&options.sweep.cases) {
        return Ok(());
    }
    check_port(resources.port())?;
    CmChannel::open()?;
    Ok(())
}

fn any_by_cm(cases: &[Case]) -> bool {
    cases.iter().any(|case| case.connect == ConnectMode::Cm)
}
