//! What a change of a case does, as a cause expects it and as it was measured.

use statistics::poisson_at_most;

/// What a change does to the speed of a case, or to its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Faster,
    /// Faster, or by chance the same, which then says nothing.
    MayBeFaster,
    /// The same, or slower.
    NotFaster,
    Same,
    /// The same but for headers and ACKs: messages or packets of half the size have twice as many.
    NearlySame,
    Slower,
    /// Half as fast, as what is limited by a count of what the change halves.
    Halved,
    /// Not that: it is limited by something else, though it may come near.
    NotHalved,
    /// As many packets of a million are lost as before.
    LossesStay,
    /// Hardly any are lost.
    LossesGo,
    /// Whatever it does tells nothing.
    Anything,
}

/// A speed that is no more than this much higher is not faster, and so on.
const MARGIN: f64 = 0.12;

/// What is left where only headers and ACKs are more, at least.
const NEARLY: f64 = 0.75;

/// What a mean that is half as high may be.
const HALF: (f64, f64) = (0.38, 0.65);

/// What no mean of half may be.
const ABOVE_HALF: f64 = 0.6;

/// A chance below which what was seen is no chance.
const CHANCE: f64 = 0.01;

/// Fewer are no sign that losses stay.
const LEAST_LOST: u64 = 5;

/// What a change did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The speed with the change over that without; the interval that has it in 96 of 100 cases.
    pub ratio: Option<f64>,
    pub low: f64,
    pub high: f64,
    /// Without and with the change; `None` where the devices do not count losses.
    pub losses: Option<[Losses; 2]>,
    pub rounds: usize,
    pub failure: Option<String>,
}

/// Packets that were lost of those that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    pub lost: u64,
    pub packets: u64,
}

impl Losses {
    /// Those of both.
    pub fn plus(self, more: Losses) -> Losses {
        Losses { lost: self.lost + more.lost, packets: self.packets + more.packets }
    }

    /// Of a million.
    pub fn ppm(self) -> f64 {
        self.lost as f64 / self.packets.max(1) as f64 * 1e6
    }
}

impl Effect {
    /// Whether both can be seen in one result.
    pub fn fits(self, other: Effect) -> bool {
        use Effect::*;
        match (self, other) {
            (Anything, _) | (_, Anything) => true,
            (one, two) if one == two => true,
            (NotFaster, Same | NearlySame | Slower | Halved) => true,
            (Same | NearlySame | Slower | Halved, NotFaster) => true,
            (NearlySame, Same) | (Same, NearlySame) => true,
            (Slower, Halved) | (Halved, Slower) => true,
            (MayBeFaster, _) => other != NotFaster && !other.is_slower(),
            (_, MayBeFaster) => self != NotFaster && !self.is_slower(),
            (NotHalved, _) => !matches!(other, Halved | Faster),
            (_, NotHalved) => !matches!(self, Halved | Faster),
            (one, two) => one.is_of_losses() != two.is_of_losses(),
        }
    }

    /// Whether it is of losses, not of speed.
    pub fn is_of_losses(self) -> bool {
        matches!(self, Effect::LossesStay | Effect::LossesGo)
    }

    fn is_slower(self) -> bool {
        matches!(self, Effect::Slower | Effect::Halved)
    }

    /// Whether a result shows it; `None` where that is not clear.
    pub fn holds(self, outcome: &Outcome) -> Option<bool> {
        if self == Effect::Anything {
            return None;
        }
        if self.is_of_losses() {
            return outcome.losses.and_then(|losses| self.holds_of_losses(losses));
        }
        let ratio = outcome.ratio?;
        let (low, high) = (outcome.low, outcome.high);
        let is_faster = low > 1.0 + MARGIN / 2.0 && ratio > 1.0 + MARGIN;
        let is_slower = high < 1.0 - MARGIN / 2.0 && ratio < 1.0 - MARGIN;
        let is_not_faster = high < 1.0 + MARGIN;
        let is_not_slower = low > 1.0 - MARGIN;
        let known = |yes: bool, no: bool| if yes == no { None } else { Some(yes) };
        match self {
            Effect::Faster => known(is_faster, is_not_faster),
            Effect::MayBeFaster => known(is_faster, is_slower),
            Effect::NotFaster => known(is_not_faster, is_faster),
            Effect::Same => known(is_not_faster && is_not_slower, is_faster || is_slower),
            Effect::NearlySame => known(is_not_faster && low > NEARLY, is_faster || high < NEARLY),
            Effect::Slower => known(is_slower, is_not_slower),
            Effect::Halved => known(low > HALF.0 && high < HALF.1, low > HALF.1 || high < HALF.0),
            Effect::NotHalved => {
                known(low > HALF.1 && is_not_faster, high < ABOVE_HALF || is_faster)
            }
            Effect::LossesStay | Effect::LossesGo | Effect::Anything => None,
        }
    }

    fn holds_of_losses(self, [before, with]: [Losses; 2]) -> Option<bool> {
        let expected = before.ppm() * 1e-6 * with.packets as f64;
        let lost = with.lost as f64;
        // Where losses come in bursts, a mean of few says little.
        let are_gone = lost <= expected / 3.0 && poisson_at_most(with.lost, expected) < CHANCE;
        let are_there = with.lost >= LEAST_LOST && lost > expected / 2.0;
        match self {
            _ if are_gone == are_there => None,
            Effect::LossesGo => Some(are_gone),
            _ => Some(are_there),
        }
    }

    /// What is expected, for a table.
    pub fn words(self) -> &'static str {
        match self {
            Effect::Faster | Effect::MayBeFaster => "faster",
            Effect::NotFaster => "not faster",
            Effect::Same => "the same",
            Effect::NearlySame => "nearly the same",
            Effect::Slower => "slower",
            Effect::Halved => "half as fast",
            Effect::NotHalved => "more than half as fast",
            Effect::LossesStay => "as many losses",
            Effect::LossesGo => "no losses",
            Effect::Anything => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(low: f64, ratio: f64, high: f64) -> Outcome {
        Outcome { ratio: Some(ratio), low, high, rounds: 8, ..Outcome::default() }
    }

    #[test]
    fn a_result_shows_an_effect_contradicts_it_or_leaves_it_open() {
        use Effect::*;
        let (yes, no) = (Some(true), Some(false));
        for (low, ratio, high, expected) in [
            (1.8, 2.0, 2.1, [yes, no, no, no, no, no]),
            (0.98, 1.0, 1.03, [no, yes, yes, yes, no, no]),
            (0.8, 0.83, 0.86, [no, yes, no, yes, yes, no]),
            (0.48, 0.5, 0.53, [no, yes, no, no, yes, yes]),
            (0.2, 0.25, 0.3, [no, yes, no, no, yes, no]),
            (0.8, 1.1, 1.6, [None, None, None, None, None, no]),
        ] {
            let held = [Faster, NotFaster, Same, NearlySame, Slower, Halved]
                .map(|effect| effect.holds(&outcome(low, ratio, high)));
            assert_eq!(held, expected, "{ratio}");
        }
    }

    #[test]
    fn losses_are_gone_or_there_beyond_chance() {
        let losses = |before: u64, with: u64| Outcome {
            losses: Some([
                Losses { lost: before, packets: 1_000_000 },
                Losses { lost: with, packets: 100_000 },
            ]),
            ..Outcome::default()
        };
        for (before, with, expected) in [
            (1_000, 0, Some(true)),
            (1_000, 100, Some(false)),
            // Of 20 one would expect 2 with a tenth of the load: none is no news.
            (20, 0, None),
            (1_000, 40, None),
        ] {
            let held =
                [Effect::LossesGo, Effect::LossesStay].map(|it| it.holds(&losses(before, with)));
            assert_eq!(held, [expected, expected.map(|gone| !gone)], "{before} {with}");
        }
    }

    #[test]
    fn effects_fit_where_one_result_can_show_both() {
        use Effect::*;
        assert!(NotFaster.fits(Halved) && Faster.fits(Anything) && LossesGo.fits(Faster));
        assert!(
            !Faster.fits(NotFaster)
                && !NotHalved.fits(Halved)
                && !Same.fits(Halved)
                && !LossesGo.fits(LossesStay)
        );
    }
}
