//! What a reader of a row must know besides its figures, with how grave it is. It must not know columns.

use std::collections::BTreeSet;

use super::columns::Columns;
use super::figures::RowOf;
use crate::judge::evenness::TOLD_BELOW;
use crate::observe::format::{fixed, plural};
use crate::results::model::{
    CaseConfig, DoubtKind, FORWARD, FlowResult, PathEvent, PathEventKind, REVERSE, Run,
};
use crate::text::Mark;

/// A remark and how grave it is.
pub(super) type Remark = (Mark, String);

/// Whether the flows are one, with traffic both ways, that was given no name.
pub(super) fn is_both_ways(config: &CaseConfig) -> bool {
    let names = config.flows.iter().map(|flow| &*flow.name);
    names.eq([FORWARD, REVERSE])
}

/// The name that a flow was given, with its nodes where there are more than two.
pub(super) fn name(config: &CaseConfig, flow: &FlowResult) -> String {
    let label = match is_both_ways(config) {
        true => "",
        false => config.flow_label(&flow.name),
    };
    let nodes = config.flows.iter().flat_map(|flow| [&flow.from, &flow.to]);
    match nodes.collect::<BTreeSet<_>>().len() > 2 {
        true => format!("{label} {} → {}", flow.from, flow.to),
        false => label.to_owned(),
    }
}

/// How the run went, and what its figures do not say.
pub(super) fn of_row(row: &RowOf<'_>, columns: &Columns) -> Vec<Remark> {
    let RowOf {
        settings,
        run,
        flow,
        ..
    } = row;
    let mut told = Vec::new();
    if run.interrupted {
        told.push((Mark::Bad, "interrupted".to_owned()));
    } else if run.failure.is_some() {
        told.push((Mark::Bad, "failed".to_owned()));
    } else if !run.complete {
        told.push((Mark::Bad, "incomplete".to_owned()));
    }
    let errors = flow.totals.errors;
    if errors > 0 {
        let text = format!("{errors} {}", plural(errors as usize, "error"));
        told.push((Mark::Bad, text));
    } else if settings.verify && run.complete {
        told.push((Mark::Good, "verify ok".to_owned()));
    }
    if flow.window.warmup_steady == Some(false) {
        told.push((Mark::Doubtful, "unsteady".to_owned()));
    }
    let doubts = flow.window.doubts.iter().map(|it| it.kind);
    let mut doubts: Vec<DoubtKind> = doubts
        .filter(|kind| !columns.are_of_loads || *kind != DoubtKind::ScheduleNotKept)
        .collect();
    doubts.dedup();
    let doubts = doubts
        .into_iter()
        .map(|kind| (Mark::Doubtful, kind.name().to_owned()));
    told.extend(doubts);
    if let Some(delivery) = flow.delivery.as_ref().filter(|it| it.lost > 0) {
        let share = fixed(delivery.lost_share * 100.0, 1);
        told.push((Mark::Doubtful, format!("lost {share} %")));
    } else if flow.delivery.is_none() && !settings.service.is_reliable() && run.complete {
        told.push((Mark::Plain, "losses not known".to_owned()));
    }
    if let Some(share) = flow.received_otherwise() {
        told.push((Mark::Doubtful, format!("received {share:.2}×")));
    }
    let fairness = flow.fairness.as_ref().filter(|_| settings.qps > 1);
    if let Some(fairness) =
        fairness.filter(|it| it.jain < TOLD_BELOW && settings.qp_weights.is_none())
    {
        told.push((Mark::Doubtful, format!("Jain {:.2}", fairness.jain)));
    }
    if run.run > 1 && !columns.have_runs() {
        told.push((Mark::Plain, format!("run {}", run.run)));
    }
    told
}

/// What packets met on their way, by the devices of all nodes. Congestion control at work is no news.
pub(super) fn of_path(run: &Run) -> Vec<Remark> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let news = |event: &&PathEvent| event.kind != PathEventKind::Congestion;
    for event in run.path_events.iter().filter(news) {
        match counts
            .iter_mut()
            .find(|(name, _)| *name == event.kind.name())
        {
            Some((_, count)) => *count = count.saturating_add(event.count),
            None => counts.push((event.kind.name(), event.count)),
        }
    }
    let told = counts
        .into_iter()
        .map(|(name, count)| format!("{name} {count}"));
    told.map(|text| (Mark::Doubtful, text)).collect()
}
