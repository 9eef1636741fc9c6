//! Open loops on both sides: whether what they moved is only what was offered, and to which loads a share of the closed
//! loop's maximum came.

use super::side::{Launch, runs};
use crate::observe::format::rate_text;
use results::model::{CaseFlow, LoadVerdict};
use statistics::median;

/// Whether a flow kept up with its schedule, and lost nothing, in all runs of both sides: what it moved is then what was asked for. As the
/// question is put of both sides alike, a choice of metrics by it leaves the tests exact.
pub(super) fn keeps_up(flow: &str, sides: [&[Launch<'_>]; 2]) -> bool {
    sides.into_iter().flat_map(runs).all(|run| {
        run.flow(flow).is_some_and(|flow| {
            let load = flow.load.as_ref();
            let all_came = flow.delivery.as_ref().is_none_or(|it| it.lost == 0);
            all_came && load.is_some_and(|load| load.verdict == LoadVerdict::Kept)
        })
    })
}

/// Which loads a share of the closed loop's maximum is on the two sides, each of its own maximum; `None` of other rates.
pub(super) fn of_share(flow: &CaseFlow<'_>, sides: [&[Launch<'_>]; 2]) -> Option<String> {
    let rate = flow.settings.rate;
    rate.share()?;
    let [base, new] = sides.map(|side| {
        let rates: Vec<f64> = runs(side)
            .filter_map(|run| run.flow(flow.name())?.load.as_ref())
            .map(|load| load.asked_per_second)
            .collect();
        median(&rates).map(rate_text)
    });
    let label = match flow.label() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    Some(format!(
        "load {rate}{label} of each side's own closed loop: {} in the base, {} in the new results",
        base?, new?
    ))
}
