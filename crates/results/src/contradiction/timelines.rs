//! Counts over time that cannot be: of a flow, and of each of its QPs. It must not judge how steady or even they are.

use super::figures::{Found, equals, not_longer, positive, unless};
use crate::model::FlowResult;
use crate::text::seconds_text;

/// The time of a flow's timeline goes on, within the window, and its messages are the total.
pub(super) fn of_flow(moved: &FlowResult, window: f64) -> Found {
    let Some(told) = &moved.timeline else {
        return Ok(());
    };
    let (what, ends) = ("a timeline", &told.at_seconds);
    times(what, told.interval_seconds, ends, window)?;
    if ends.is_empty() && told.messages.is_empty() {
        Ok(())
    } else {
        counts(what, ends, &told.messages, "messages", moved.totals.messages)
    }
}

/// The same of its QPs.
pub(super) fn of_qps(moved: &FlowResult, window: f64) -> Found {
    let Some(told) = &moved.qp_timeline else {
        return Ok(());
    };
    let (what, ends) = ("a timeline of QPs", &told.at_seconds);
    times(what, told.interval_seconds, ends, window)?;
    let (timelines, qps) = (told.messages.len(), moved.qps.len());
    equals("QPs", qps as u64, "timelines of", timelines as u128)?;
    for (messages, qp) in told.messages.iter().zip(&moved.qps) {
        let of = format!("messages on QP {}", qp.index);
        counts(what, ends, messages, &of, qp.messages)?;
    }
    Ok(())
}

/// There is a count for each end of an interval, and all of them make the total.
fn counts(what: &str, ends: &[f64], counts: &[u64], of: &str, total: u64) -> Found {
    let (ends, all) = (ends.len(), counts.len());
    unless(ends == all, || format!("has {what} of {ends} times and {all} counts"))?;
    let sum = counts.iter().map(|count| u128::from(*count)).sum();
    equals(of, total, "its timeline", sum)
}

fn times(what: &str, interval: f64, ends: &[f64], window: f64) -> Found {
    positive(&format!("{what}'s interval (s)"), interval)?;
    let mut before = 0.0;
    for &at in ends {
        unless(at > before, || {
            let [at, before] = [at, before].map(seconds_text);
            format!("has {what} in which {at} comes after {before}")
        })?;
        before = at;
    }
    not_longer(what, before, window)
}
