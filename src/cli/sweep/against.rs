//! `--against perftest` and `--beside`: how many pairs or rounds, whether perftest can run the cases at all, and which cases
//! a victim has.

use std::time::Duration;

use crate::coordinator::interface::{Against, Rounds};
use perftest::{LONGEST_LIMIT, fits};
use plan::{Nodes, Sweep};
use statistics::FEWEST_PAIRS;

use crate::cli::args::AgainstArgs;
use crate::cli::terminal::errors::Failure;

/// Without a limit given: time for many QPs on a slow machine.
const DEFAULT_LIMIT: Duration = Duration::from_secs(20);

/// Most pairs for each of the least.
const MOST_FACTOR: u32 = 3;

/// What the options ask for; `None` without `--against`. More `--runs` than pairs are pairs too.
///
/// # Errors
/// Bad input: numbers that are odd or contradict each other, or a case that perftest cannot run.
pub(in crate::cli) fn against(
    args: &AgainstArgs,
    sweep: &Sweep,
) -> Result<Option<Against>, Failure> {
    if args.against.is_none() {
        return Ok(None);
    }
    if sweep.nodes != Nodes::TwoEnds {
        return Err(Failure::bad_input("--against perftest compares two ends, not --nodes")
            .with_hint("give one server as HOST"));
    }
    if sweep.cases.iter().any(|case| case.pattern.is_some()) {
        return Err(Failure::bad_input("--against perftest compares one flow, not --pattern")
            .with_hint("leave one of them out"));
    }
    let (pairs, max_pairs) = pairs(args, sweep)?;
    let limit = match args.perftest_limit {
        Some(span) => Duration::from_nanos(span.ns()),
        None => DEFAULT_LIMIT,
    };
    if limit < Duration::from_millis(1) || limit > LONGEST_LIMIT {
        return Err(Failure::bad_input("--perftest-limit is out of range: it must be 1ms to 1h")
            .with_hint("20s is enough for hundreds of QPs"));
    }
    for case in &sweep.cases {
        fits(case).map_err(|misfit| {
            let hint = misfit.hint.clone();
            Failure::bad_input(misfit).with_hint(hint)
        })?;
    }
    Ok(Some(Against { pairs, max_pairs, limit }))
}

/// Least and most pairs, or rounds.
fn pairs(args: &AgainstArgs, sweep: &Sweep) -> Result<(u32, u32), Failure> {
    for (option, number) in [("--pairs", args.pairs), ("--max-pairs", args.max_pairs)] {
        if let Some(number) = number.filter(|number| number % 2 == 1) {
            return Err(Failure::bad_input(format!(
                "{option} {number} is odd, but each side begins half of the pairs"
            ))
            .with_hint(format!("give {option} {}", number + 1)));
        }
    }
    let pairs = args.pairs.unwrap_or(FEWEST_PAIRS).max(sweep.runs().next_multiple_of(2));
    let max_pairs = args.max_pairs.unwrap_or(pairs.saturating_mul(MOST_FACTOR));
    if max_pairs < pairs {
        return Err(Failure::bad_input(format!(
            "--max-pairs {max_pairs} is less than the {pairs} pairs of --pairs or --runs"
        ))
        .with_hint(format!("give --max-pairs at least {pairs}, or lower --pairs")));
    }
    Ok((pairs, max_pairs))
}

/// The sweep as it was asked for, or with `--beside` the cases of its only one alone and beside each attacker, and the rounds
/// of them.
///
/// # Errors
/// Bad input: no victim, no attacker, or numbers that are odd or contradict each other.
pub(in crate::cli) fn beside(
    args: &AgainstArgs,
    sweep: Sweep,
) -> Result<(Sweep, Option<Rounds>), Failure> {
    if args.beside.is_empty() {
        return Ok((sweep, None));
    }
    if matches!(sweep.nodes, Nodes::Ranks(_)) {
        let text = "--beside cannot be used with a launcher's ranks";
        return Err(Failure::bad_input(text).with_hint("run `rocebench HOST`, or give --nodes"));
    }
    let (least, most) = pairs(args, &sweep)?;
    let made = plan::beside::beside(sweep, &args.beside);
    let (sweep, attackers) = made.map_err(|why| Failure::bad_input(format!("--beside: {why}")))?;
    let rounds = Rounds { attackers, least, most };
    Ok((sweep, Some(rounds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;
    use settings::Given;

    fn asked(pairs: Option<u32>, max_pairs: Option<u32>, runs: u32) -> Result<(u32, u32), String> {
        let args = AgainstArgs {
            against: Some("perftest".into()),
            pairs,
            max_pairs,
            perftest_limit: None,
            beside: Vec::new(),
        };
        let mut sweep = Sweep::new(&Given::default()).unwrap();
        sweep.cases[0].runs = runs;
        let against = against(&args, &sweep).map_err(|failure| failure.text())?;
        Ok(against.map(|it| (it.pairs, it.max_pairs)).unwrap())
    }

    #[test]
    fn pairs_are_even_and_at_most_three_times_as_many() {
        assert_eq!(asked(None, None, 1), Ok((8, 24)));
        assert_eq!(asked(Some(2), None, 1), Ok((2, 6)));
        assert_eq!(asked(None, Some(14), 1), Ok((8, 14)));
        assert_eq!(asked(None, None, 9), Ok((10, 30)), "runs are pairs");
        for (pairs, max_pairs, words) in [
            (Some(5), None, ["odd", "--pairs 6"]),
            (None, Some(15), ["odd", "--max-pairs 16"]),
            (Some(6), Some(4), ["--max-pairs 4", "hint"]),
        ] {
            has(asked(pairs, max_pairs, 1).unwrap_err(), words);
        }
    }
}
