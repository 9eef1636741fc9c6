//! Synthetic gates: launches are added in turns until it is clear at a planned look, as `rocebench gate` does.

use fastrand::Rng;
use report::judge::compare::{GATE_MARGIN, GATE_METRICS, Margins};
use statistics::{Looks, Verdict, verdicts};

use super::sittings::{Setup, Sitting};

/// How gates ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// With a regression.
    pub regressed: usize,
    /// With every case clear, and none of them slower.
    pub clear: usize,
    /// With the first case's bandwidth called equal.
    pub equal: usize,
    /// Launches a side, all gates together.
    pub launches: u32,
}

/// Runs so many gates with at most the launches of `setup`.
pub fn gates(setup: &Setup, count: usize, seed: u64) -> Ended {
    let mut rng = Rng::with_seed(seed);
    let margins = Margins::default().or_at_least(GATE_MARGIN);
    let last = setup.launches as u32;
    let looks = Looks::of_launches(last);
    let mut ended = Ended::default();
    for _ in 0..count {
        let sitting = Sitting::new(setup, &mut rng);
        for launches in (1..=last).filter(|it| looks.is_look(*it, *it == last)) {
            let questions = sitting.of_first(launches as usize, &GATE_METRICS, &margins);
            let words = verdicts(&questions, looks.part(launches));
            let mut all = words.over_all.iter().chain(&words.by_case);
            let regressed = all.any(|it| *it == Verdict::Worse);
            let clear = !words.by_case.contains(&Verdict::Unclear);
            if regressed || clear || launches == last {
                ended.regressed += usize::from(regressed);
                ended.clear += usize::from(clear && !regressed);
                ended.equal += usize::from(words.by_case[0] == Verdict::Equal);
                ended.launches += launches;
                break;
            }
        }
    }
    ended
}
