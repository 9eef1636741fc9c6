//! Remarks behind the figures of a row, and how grave they are.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{Columns, RowOf};
use crate::judge::evenness::TOLD_BELOW;
use crate::observe::format::{counted, fixed};
use results::model::{CaseConfig, DoubtKind, FORWARD, FlowResult, PathEventKind, REVERSE, Run};
use results::text::Mark;

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
    let mut remarks: Vec<Remark> = Vec::new();
    if run.interrupted {
        remarks.push((Mark::Bad, "interrupted".to_owned()));
    } else if run.failure.is_some() {
        remarks.push((Mark::Bad, "failed".to_owned()));
    } else if !run.complete {
        remarks.push((Mark::Bad, "incomplete".to_owned()));
    }
    let errors = flow.totals.errors;
    if errors > 0 {
        remarks.push((Mark::Bad, counted(errors as usize, "error")));
    } else if settings.verify && run.complete {
        remarks.push((Mark::Good, "verify ok".to_owned()));
    }
    if flow.window.warmup_steady == Some(false) {
        remarks.push((Mark::Doubtful, "unsteady".to_owned()));
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
        remarks.push((Mark::Doubtful, kind.name().to_owned()));
    }
    if let Some(delivery) = flow.delivery.as_ref().filter(|it| it.lost > 0) {
        let share = fixed(delivery.lost_share * 100.0, 1);
        remarks.push((Mark::Doubtful, format!("lost {share} %")));
    } else if flow.delivery.is_none() && !settings.service.is_reliable() && run.complete {
        remarks.push((Mark::Plain, "losses not known".to_owned()));
    }
    if let Some(share) = flow.received_otherwise() {
        remarks.push((Mark::Doubtful, format!("received {share:.2}×")));
    }
    let fairness = flow.fairness.as_ref().filter(|_| settings.qps > 1);
    if let Some(fairness) =
        fairness.filter(|it| it.jain < TOLD_BELOW && settings.qp_weights.is_none())
    {
        remarks.push((Mark::Doubtful, format!("Jain {:.2}", fairness.jain)));
    }
    if run.run > 1 && !columns.have_runs() {
        remarks.push((Mark::Plain, format!("run {}", run.run)));
    }
    remarks
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
