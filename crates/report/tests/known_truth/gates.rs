//! Gates on synthetic figures whose truth is known: launches are added in turns until it is clear at a planned look, as
//! `rocebench gate` does.

use fastrand::Rng;
use report::judge::compare::{GATE_MARGIN, GATE_METRICS, Margins};
use statistics::{InterimAnalyses, Verdict, verdicts};

use super::verdicts::experiments::{Experiment, FIGURES, Setup};
use super::verdicts::noise::Noise;

/// Of each kind of noise and each change.
const GATES: usize = 300;

/// Most launches a side.
const LAUNCHES: usize = 14;

/// How gates ended: with a regression, with every case clear and none slower, with the first case's bandwidth called equal;
/// and launches a side, all gates together.
#[derive(Debug, Default)]
struct Ended {
    regressed: usize,
    clear: usize,
    equal: usize,
    launches: u32,
}

/// Gates of four cases, of which all are so much slower.
fn gates(noise: Noise, spread: f64, slower: f64) -> Ended {
    let setup = Setup { spread, cases: 4, launches: LAUNCHES, ..Setup::new(noise) };
    let setup = setup.slower_by(slower, 4);
    let mut rng = Rng::with_seed(7);
    let margins = Margins::default().or_at_least(GATE_MARGIN);
    let last = LAUNCHES as u32;
    let looks = InterimAnalyses::of_launches(last);
    let mut ended = Ended::default();
    for _ in 0..GATES {
        let experiment = Experiment::new(&setup, &mut rng);
        for launches in (1..=last).filter(|it| looks.is_due(*it, *it == last)) {
            let mut questions = experiment.questions();
            questions.retain(|question| GATE_METRICS.contains(&FIGURES[question.metric].0));
            for question in &mut questions {
                question.margin = margins.of(FIGURES[question.metric].0);
                for side in [&mut question.base, &mut question.new] {
                    side.units = &side.units[..launches as usize];
                    side.values = &side.values[..launches as usize];
                }
            }
            let words = verdicts(&questions, looks.part(launches));
            let mut verdicts = words.over_all.iter().chain(&words.by_case);
            let regressed = verdicts.any(|it| *it == Verdict::Worse);
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

#[test]
fn gates_seldom_end_falsely_and_end_early_where_it_is_clear() {
    for &noise in Noise::ALL {
        let [alike, quiet] = [0.03, 0.01].map(|spread| gates(noise, spread, 0.0));
        let (margin, slower) = (gates(noise, 0.01, 0.05), gates(noise, 0.03, 0.1));
        let details = format!("{noise:?}: {alike:?}, {quiet:?}, {margin:?}, {slower:?}");
        let most = GATES * 5 / 100;
        let wrong = [alike.regressed, quiet.regressed, margin.equal];
        assert!(wrong.iter().all(|it| *it <= most), "{details}");
        assert!(slower.regressed >= GATES - most, "{details}");
        // Some of its cases scatter by 4 %.
        if noise != Noise::Uneven {
            assert!(quiet.clear >= GATES * 9 / 10, "{details}");
            assert!(quiet.launches < 11 * GATES as u32, "{details}");
        }
    }
}
