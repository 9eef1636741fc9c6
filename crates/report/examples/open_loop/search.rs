//! Searches for the load that a limit of latency allows, at a server with a fixed service time, where M/D/1 says which
//! load that is.

use results::model::{LoadSearch, SearchEnd};
use statistics::median;

use crate::{Checked, cases, number, only_open_loop, percent_off};
use queueing::Md1;

/// The part of the searches whose bounds are to hold the truth.
const HOLD: f64 = 0.95;

/// Prints a row a search. A message that does not wait takes the median of `idle`.
pub fn table(service_us: &str, idle: &str, files: &[&str]) -> Checked {
    let service_us = number(service_us, "SERVICE_US")?;
    let idle = only_open_loop(idle)?;
    let idle_us = idle.latency.p50.unwrap_or_default() as f64 / 1e3;
    println!("A message that does not wait takes {idle_us:.1} us.\n");
    println!(
        "| search | true limit, 1/s | lower bound | off | upper bound | off | trials | seconds | the search says |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|---|");
    let searches: Vec<LoadSearch> = cases(files)?.flat_map(|case| case.searches).collect();
    let mut hold = 0;
    let mut off = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for search in &searches {
        let [limit] = search.limits.as_slice() else {
            return Err("a search with several limits".into());
        };
        let wait = (limit.below_ns as f64 / 1e3 - idle_us) / service_us;
        let truly = Md1::highest_load(limit.percentile / 100.0, wait) * 1e6 / service_us;
        let bounds = (search.lower_per_second, search.upper_per_second);
        let holds = search.end == SearchEnd::Found
            && bounds.0.is_some_and(|lower| lower <= truly)
            && bounds.1.is_some_and(|upper| upper >= truly);
        hold += usize::from(holds);
        let seconds = search.trials.iter().map(|it| it.seconds).sum::<f64>();
        let bound_off = |bound: Option<f64>| bound.map(|bound| percent_off(bound, truly));
        off[0].extend(bound_off(bounds.0));
        off[1].extend(bound_off(bounds.1));
        off[2].push(search.trials.len() as f64);
        off[3].push(seconds);
        let text_of = |bound: Option<f64>| match bound {
            Some(bound) => format!("{bound:.0} | {:+.1} %", percent_off(bound, truly)),
            None => "- | -".into(),
        };
        println!(
            "| {} | {truly:.0} | {} | {} | {} | {seconds:.0} | {}{} |",
            search.asked,
            text_of(bounds.0),
            text_of(bounds.1),
            search.trials.len(),
            search.end.name(),
            ["", ", and **does not hold the truth**"][usize::from(!holds)],
        );
    }
    let [lower, upper, trials, seconds] = off.map(|values| median(&values).unwrap_or(f64::NAN));
    println!("| median | | | {lower:+.1} % | | {upper:+.1} % | {trials:.0} | {seconds:.0} | |");
    println!("\n{hold} of {} searches found bounds that hold the truth.", searches.len());
    Ok(if hold as f64 >= HOLD * searches.len() as f64 {
        Vec::new()
    } else {
        vec![format!(
            "{hold} of {} searches hold the truth, not {:.0} %",
            searches.len(),
            HOLD * 100.0
        )]
    })
}
