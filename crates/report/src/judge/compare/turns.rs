//! When launches began, and whether a machine that changes meanwhile could pass for a difference of the sides.
//!
//! A machine drifts, or has a neighbour for ten minutes. Let F(t) be the part of a side's launches that had begun at the time t,
//! and the lead max |F_base(t) − F_new(t)|. Of a change with time whose ups and downs add up to V, the difference of the sides'
//! means takes at most V × lead (integration by parts). The lead is 1 for one side after the other, and 1/n for n launches of
//! each in strict turns. One side after the other is judged across time, if that is asked for, where launches are so far apart
//! that each meets slow minutes by itself: then they are as good as dealt.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::sides::{Launch, SideCase, SideFiles};

/// The largest lead. `tests/known_truth/in_turns.rs` shows that drifts then pass for a change in 5 experiments of 100 at most.
const MOST_LEAD: f64 = 1.0 / 3.0;

/// Between launches of a side that are judged across time: longer than what comes and goes on a machine.
const APART: Duration = Duration::HOUR;

/// What is to be said of launches that began when these did; none of launches in turns.
///
/// # Errors
/// Why they are not judged.
pub(super) fn check(
    sides: &[Vec<Launch<'_>>; 2],
    is_across_time: bool,
) -> Result<Option<String>, String> {
    let times = sides.each_ref().map(|side| start_times(side));
    let [base, new] = &times;
    match reason_against(base, new) {
        Some(reason) if !is_across_time => Err(reason),
        Some(reason) if !times.iter().all(|side| are_apart(side)) => {
            Err(format!("{reason}; --across time needs an hour between the launches of a side"))
        }
        reason => Ok(reason),
    }
}

/// The launches that count. Where some do not, and what is left is not in turns, those beside them are left out too: the rounds
/// that are whole are in turns still. Says so in `notes`.
pub(super) fn whole_rounds<'a>(
    sides: &[SideFiles<'a>; 2],
    cases: &[SideCase<'a>; 2],
    launches: [Vec<Launch<'a>>; 2],
    notes: &mut Vec<String>,
) -> [Vec<Launch<'a>>; 2] {
    if check(&launches, false).is_ok() {
        return launches;
    }
    let [base, new] = [0, 1].map(|side| {
        let files = cases[side].iter().filter_map(|(number, _)| {
            let file = sides[side].files.get(*number)?;
            Some((began(&file.result.started_at)?, *number))
        });
        let mut by_time: Vec<(OffsetDateTime, usize)> = files.collect();
        by_time.sort_unstable();
        by_time
    });
    let counts = |side: usize, number: usize| launches[side].iter().any(|it| it.number == number);
    let rounds = base.iter().zip(&new).map(|((_, old), (_, now))| [*old, *now]);
    let whole: Vec<[usize; 2]> =
        rounds.filter(|[old, now]| counts(0, *old) && counts(1, *now)).collect();
    let kept = [0, 1].map(|side| -> Vec<Launch<'a>> {
        let own = launches[side].iter();
        own.filter(|it| whole.iter().any(|round| round[side] == it.number)).cloned().collect()
    });
    if base.len() != new.len() || whole.is_empty() || check(&kept, false).is_err() {
        return launches;
    }
    let count: usize = (launches.iter().zip(&kept)).map(|(had, has)| had.len() - has.len()).sum();
    notes.push(format!(
        "left out, so that the others are in turns: {count} beside one that does not count"
    ));
    kept
}

fn start_times<'a>(launches: &[Launch<'a>]) -> Vec<&'a str> {
    launches.iter().map(|launch| launch.file.result.started_at.as_str()).collect()
}

fn began(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// Whether these times (RFC 3339) are an hour apart or more.
fn are_apart(times: &[&str]) -> bool {
    let mut sorted: Vec<OffsetDateTime> = times.iter().filter_map(|text| began(text)).collect();
    sorted.sort_unstable();
    sorted.len() == times.len() && sorted.windows(2).all(|pair| pair[1] - pair[0] >= APART)
}

fn lead([base, new]: [f64; 2]) -> f64 {
    (base - new).abs()
}

/// Why the launches that began at these times (RFC 3339) were not in turns; `None` when they were.
pub(super) fn reason_against(base: &[&str], new: &[&str]) -> Option<String> {
    let mut launches = Vec::with_capacity(base.len() + new.len());
    for (side, times) in [base, new].into_iter().enumerate() {
        for text in times {
            let Some(time) = began(text) else {
                return Some(format!("\"{text}\" is not a time at which a launch began"));
            };
            launches.push((time, side));
        }
    }
    launches.sort_unstable();
    let (mut begun, mut apart) = ([0, 0], [0.0, 0.0]);
    // Launches of one moment are in no order: the lead is looked at after all of them.
    for moment in launches.chunk_by(|(one, _), (other, _)| one == other) {
        moment.iter().for_each(|(_, side)| begun[*side] += 1);
        let parts =
            [f64::from(begun[0]) / base.len() as f64, f64::from(begun[1]) / new.len() as f64];
        if lead(parts) > lead(apart) {
            apart = parts;
        }
    }
    // Differences of such parts are off in their last digits.
    if lead(apart) <= MOST_LEAD + 1e-9 {
        return None;
    }
    let [of_base, of_new] = apart.map(|part| part * 100.0);
    Some(format!(
        "not launched in turns: at one time {of_base:.0} % of the base's launches had begun and {of_new:.0} % of the new \
         side's, so a drift of the machine would look like a change"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    /// `A` is a launch of the base, `n` one of the new side, a second apart; those in brackets begin at once.
    fn reason(order: &str) -> Option<String> {
        let (mut base, mut new, mut second, mut at_once) = (Vec::new(), Vec::new(), 0, false);
        for letter in order.chars() {
            let time = format!("2026-11-20T12:{:02}:{:02}.5Z", second / 60, second % 60);
            match letter {
                'A' => base.push(time),
                'n' => new.push(time),
                '(' => at_once = true,
                _ => at_once = false,
            }
            second += u32::from(!at_once);
        }
        fn slices(times: &[String]) -> Vec<&str> {
            times.iter().map(String::as_str).collect()
        }
        reason_against(&slices(&base), &slices(&new))
    }

    #[test]
    fn turns_of_every_kind_are_turns() {
        // Also pairs of six a side and a launch that failed, twice as many of one side, and several at once.
        let orders = "AnAnAn AnnAAn AnnAAnnA AnAnAnAnAn AnnAAnnAAnnAAnnA AAnnAAnnAAnn AnnAAnAAn \
                  AnnAAnnAAnAnnA AAnAAnAAnAAn (AAAAnnnn) (An)(An)(An)";
        for order in orders.split(' ') {
            assert_eq!(reason(order), None, "{order}");
        }
    }

    #[test]
    fn one_after_the_other_is_named_whoever_was_first() {
        // A wave favours whoever has its top; the last one has turns, and then more of one side.
        for (order, of_base, of_new) in [
            ("AAAnnn", 100, 0),
            ("nnnnnAAAAA", 0, 100),
            ("AAAAAnnnnnAAAAAnnnnn", 50, 0),
            ("AAnnnnAA", 50, 0),
            ("AnAnAnAnnnnn", 100, 38),
        ] {
            let at_one_time =
                format!("at one time {of_base} % of the base's launches had begun and {of_new} %");
            let expected = format!("not launched in turns: {at_one_time}");
            has(reason(order).unwrap_or_default(), [&*expected]);
        }
    }

    #[test]
    fn nights_are_apart_and_launches_of_one_evening_are_not() {
        let nights = ["2026-11-22T01:00:00Z", "2026-11-20T01:00:00Z", "2026-11-21T02:00:00+01:00"];
        assert!(are_apart(&nights));
        assert!(!are_apart(&["2026-11-20T01:00:00Z", "2026-11-20T01:59:59Z"]));
    }

    #[test]
    fn times_are_of_any_zone_and_must_be_times() {
        let (first, latest) = ("2026-11-20T12:00:00Z", "2026-11-20T12:04:00.000Z");
        let base = [first, "2026-11-20T15:02:00+03:00", latest];
        let (between, last) = ("2026-11-20T12:03:00Z", "2026-11-20T11:05:00-01:00");
        let new = ["2026-11-20T12:01:00Z", between, last];
        assert_eq!(reason_against(&base, &new), None);
        let reason = reason_against(&base, &["", between, "2026-11-20T12:05:00Z"]);
        assert!(reason.unwrap().contains("is not a time"));
    }
}
