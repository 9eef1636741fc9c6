//! Remarks behind the figures of a row, and how grave they are. It must not know columns.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{Columns, RowOf};
use crate::judge::evenness::TOLD_BELOW;
use crate::observe::format::{counted, fixed};
use crate::results::model::{
    CaseConfig, DoubtKind, FORWARD, FlowResult, PathEventKind, REVERSE, Run,
};
use crate::text::Mark;

/// A remark and how grave it is.
pub(super) type Remark = (Mark, String);

/// Whether the flows are the two directions of one flow without a name.
pub(super) fn is_both_ways(config: &CaseConfig) -> bool {
    config.flows.iter().map(|flow| &*flow.name).eq([FORWARD, REVERSE])
}

/// The flow's own name, with its nodes if there are more than two.
pub(super) fn name(config: &CaseConfig, flow: &FlowResult) -> String {
    let label = if is_both_ways(config) { "" } else { config.flow_label(&flow.name) };
    if config.flows.iter().flat_map(|flow| [&flow.from, &flow.to]).collect::<BTreeSet<_>>().len()
        > 2
    {
        format!("{label} {} → {}", flow.from, flow.to)
    } else {
        label.to_owned()
    }
}

/// How the run went, and what its figures do not say.
pub(super) fn of_row(row: &RowOf<'_>, columns: &Columns) -> Vec<Remark> {
    let (settings, run, flow) = (row.settings, row.run, row.flow);
    let mut told = Vec::new();
    let mut tell = |mark, text: &str| told.push((mark, text.to_owned()));
    if run.interrupted {
        tell(Mark::Bad, "interrupted");
    } else if run.failure.is_some() {
        tell(Mark::Bad, "failed");
    } else if !run.complete {
        tell(Mark::Bad, "incomplete");
    }
    let errors = flow.totals.errors;
    if errors > 0 {
        tell(Mark::Bad, &counted(errors as usize, "error"));
    } else if settings.verify && run.complete {
        tell(Mark::Good, "verify ok");
    }
    if flow.window.warmup_steady == Some(false) {
        tell(Mark::Doubtful, "unsteady");
    }
    let mut doubts: Vec<DoubtKind> = flow
        .window
        .doubts
        .iter()
        .map(|it| it.kind)
        .filter(|kind| !columns.are_of_loads || *kind != DoubtKind::ScheduleNotKept)
        .collect();
    doubts.dedup();
    for kind in doubts {
        tell(Mark::Doubtful, kind.name());
    }
    if let Some(delivery) = flow.delivery.as_ref().filter(|it| it.lost > 0) {
        let share = fixed(delivery.lost_share * 100.0, 1);
        tell(Mark::Doubtful, &format!("lost {share} %"));
    } else if flow.delivery.is_none() && !settings.service.is_reliable() && run.complete {
        tell(Mark::Plain, "losses not known");
    }
    if let Some(share) = flow.received_otherwise() {
        tell(Mark::Doubtful, &format!("received {share:.2}×"));
    }
    let fairness = flow.fairness.as_ref().filter(|_| settings.qps > 1);
    if let Some(fairness) =
        fairness.filter(|it| it.jain < TOLD_BELOW && settings.qp_weights.is_none())
    {
        tell(Mark::Doubtful, &format!("Jain {:.2}", fairness.jain));
    }
    if run.run > 1 && !columns.have_runs() {
        tell(Mark::Plain, &format!("run {}", run.run));
    }
    told
}

/// Path events of all nodes' devices. Congestion is normal, so it is left out.
pub(super) fn of_path(run: &Run) -> Vec<Remark> {
    let mut counts: BTreeMap<PathEventKind, u64> = BTreeMap::new();
    for event in &run.path_events {
        let count = counts.entry(event.kind).or_default();
        *count = count.saturating_add(event.count);
    }
    counts.remove(&PathEventKind::Congestion);
    counts
        .into_iter()
        .map(|(kind, count)| (Mark::Doubtful, format!("{} {count}", kind.name())))
        .collect()
}
