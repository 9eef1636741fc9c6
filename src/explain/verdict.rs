//! The verdict on a lesson.

use crate::lesson::Outcome;
use crate::protocol::mistake::Mistake;

use super::text::Key;

/// How a lesson ended, compared with what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No mistake: the message arrived.
    Arrived,
    /// No mistake: the message did not arrive.
    NotArrived,
    /// Mistake: the expected error came.
    Promised,
    NotPromised,
    NoError,
}

impl Verdict {
    /// The verdict on a lesson's outcome.
    pub fn of(mistake: Option<Mistake>, outcome: &Outcome) -> Verdict {
        match (mistake, &outcome.error) {
            (None, None) if outcome.arrived => Verdict::Arrived,
            (None, _) => Verdict::NotArrived,
            (Some(_), None) => Verdict::NoError,
            (Some(mistake), Some(error)) if mistake.promises(error) => Verdict::Promised,
            (Some(_), Some(_)) => Verdict::NotPromised,
        }
    }

    pub fn is_good(self) -> bool {
        matches!(self, Verdict::Arrived | Verdict::Promised)
    }

    pub(super) fn key(self) -> Key {
        match self {
            Verdict::Arrived => Key::Arrived,
            Verdict::NotArrived => Key::NotArrived,
            Verdict::Promised => Key::Promised,
            Verdict::NotPromised => Key::NotPromised,
            Verdict::NoError => Key::NoError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lesson::ObservedError;
    use verbs::WcStatus;

    #[test]
    fn a_broken_lesson_is_good_when_the_promised_error_comes() {
        let ended = |status: Option<u32>, arrived| Outcome {
            error: status.map(|code| ObservedError::Completion(WcStatus(code))),
            arrived,
        };
        let rkey = Some(Mistake::Rkey);
        for (mistake, outcome, verdict) in [
            (None, ended(None, true), Verdict::Arrived),
            (None, ended(None, false), Verdict::NotArrived),
            (None, ended(Some(12), false), Verdict::NotArrived),
            (rkey, ended(Some(10), false), Verdict::Promised),
            (rkey, ended(Some(12), false), Verdict::NotPromised),
            (rkey, ended(None, true), Verdict::NoError),
        ] {
            assert_eq!(Verdict::of(mistake, &outcome), verdict);
        }
        assert!(Verdict::Promised.is_good() && !Verdict::NoError.is_good());
    }
}
