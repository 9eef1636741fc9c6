//! Whether two sides were launched in turns, so that whatever changed with time met both alike. It knows times only.
//!
//! A machine changes while it is measured: it drifts, it has a neighbour for ten minutes. Let F(t) be the part of a side's
//! launches that had begun at the time t, and the lead max |F_base(t) − F_new(t)|. Of a change with time whose ups and downs
//! add up to V, the difference of the sides' means takes at most V × lead (integration by parts). The lead is 1 for one
//! side after the other, and 1/n for n launches of each in strict turns.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Launches a side below which there are no turns to speak of.
pub(super) const LEAST: usize = 3;

/// The largest lead. `tests/in_turns.rs` shows that drifts then pass for a change in 5 experiments of 100 at most.
const MOST_LEAD: f64 = 1.0 / 3.0;

fn lead([base, new]: [f64; 2]) -> f64 {
    (base - new).abs()
}

/// Why the launches that began at these times (RFC 3339) were not in turns; `None` when they were.
pub(super) fn reason_against(base: &[&str], new: &[&str]) -> Option<String> {
    if base.len().min(new.len()) < LEAST {
        return Some(match (base.len(), new.len()) {
            (1, 1) => "one launch each".to_owned(),
            (base, new) => format!("{base} and {new} launches, too few to be in turns"),
        });
    }
    let mut launches = Vec::with_capacity(base.len() + new.len());
    for (side, times) in [base, new].into_iter().enumerate() {
        for text in times {
            let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) else {
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
    let [base, new] = apart.map(|part| part * 100.0);
    Some(format!(
        "not launched in turns: at one time {base:.0} % of the base's launches had begun and {new:.0} % of the new \
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
            let told = format!("not launched in turns: {at_one_time}");
            has(reason(order).unwrap_or_default(), [&*told]);
        }
    }

    #[test]
    fn few_launches_are_no_turns() {
        assert_eq!(reason("An").unwrap(), "one launch each");
        for order in ["AnnA", "AnAnA", "AnnnnnnnnA"] {
            assert!(reason(order).unwrap().contains("too few"), "{order}");
        }
    }

    #[test]
    fn times_are_of_any_zone_and_must_be_times() {
        let (first, last) = ("2026-11-20T12:00:00Z", "2026-11-20T12:04:00.000Z");
        let base = [first, "2026-11-20T15:02:00+03:00", last];
        let (between, last) = ("2026-11-20T12:03:00Z", "2026-11-20T11:05:00-01:00");
        let new = ["2026-11-20T12:01:00Z", between, last];
        assert_eq!(reason_against(&base, &new), None);
        let reason = reason_against(&base, &["", between, "2026-11-20T12:05:00Z"]);
        assert!(reason.unwrap().contains("is not a time"));
    }
}
