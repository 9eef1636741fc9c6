//! Counts over time that cannot be: of a flow, and of each of its QPs. It must not judge how steady or even they are.

use super::figures::{Found, finite, is_longer, not_negative, positive};
use crate::results::model::FlowResult;
use crate::text::seconds_text;

/// The time of a flow's timeline goes on, within the window, and its messages are the total.
pub(super) fn of_flow(moved: &FlowResult, window: f64) -> Found {
    let Some(told) = &moved.timeline else {
        return Ok(());
    };
    times(
        "a timeline",
        told.interval_seconds,
        &told.at_seconds,
        window,
    )?;
    counts("a timeline", told.at_seconds.len(), told.messages.len())?;
    if let Some(stall) = told.longest_stall_seconds {
        not_negative("a stall (s)", stall)?;
    }
    let (sum, total) = (sum(&told.messages), u128::from(moved.totals.messages));
    match told.messages.is_empty() || sum == total {
        true => Ok(()),
        false => Err(format!("has {total} messages, and its timeline {sum}")),
    }
}

/// The same of its QPs.
pub(super) fn of_qps(moved: &FlowResult, window: f64) -> Found {
    let Some(told) = &moved.qp_timeline else {
        return Ok(());
    };
    let what = "a timeline of QPs";
    times(what, told.interval_seconds, &told.at_seconds, window)?;
    if told.messages.len() != moved.qps.len() {
        let (timelines, qps) = (told.messages.len(), moved.qps.len());
        return Err(format!("has timelines of {timelines} QPs, and {qps} QPs"));
    }
    for (messages, qp) in told.messages.iter().zip(&moved.qps) {
        counts(what, told.at_seconds.len(), messages.len())?;
        let (sum, total, index) = (sum(messages), u128::from(qp.messages), qp.index);
        if sum != total {
            return Err(format!(
                "has {total} messages on QP {index}, and its timeline {sum}"
            ));
        }
    }
    Ok(())
}

fn sum(messages: &[u64]) -> u128 {
    messages.iter().map(|count| u128::from(*count)).sum()
}

fn counts(what: &str, ends: usize, counts: usize) -> Found {
    match ends == counts {
        true => Ok(()),
        false => Err(format!("has {what} of {ends} times and {counts} counts")),
    }
}

fn times(what: &str, interval: f64, ends: &[f64], window: f64) -> Found {
    positive(&format!("{what}'s interval (s)"), interval)?;
    let mut before = 0.0;
    for &at in ends {
        finite(&format!("a time in {what} (s)"), at)?;
        if at <= before {
            let [at, before] = [at, before].map(seconds_text);
            return Err(format!("has {what} in which {at} comes after {before}"));
        }
        before = at;
    }
    match is_longer(before, window) {
        true => Err(format!(
            "has {what} of {before:.3} s in a window of {window:.3} s"
        )),
        false => Ok(()),
    }
}
