//! What figures say of the new side, in words: of launches, all questions of a comparison together; of rounds in turns, one
//! question by itself. And why a question is open still.

use std::collections::HashMap;

use results::Metric;
use results::model::{
    CaseComparison, MetricComparison, Observation, OverAll, Reach, Settles, Verdict,
};
use statistics::{
    Answer, FEWEST_PAIRS, Figures, InterimAnalyses, Judgement, Turn, Unit, Unsettled, judge,
    ratio_in_turns, verdict,
};

/// Which runs a case's figures are of: those of the base, those of the new side.
pub type Units = [Vec<Unit>; 2];

/// Judges all metrics of all cases together that are to be judged, with `units` of each case; `part` as of
/// [`statistics::judge`]. What each metric says over all cases, and what so many figures can settle.
pub fn judge_together(
    cases: &mut [CaseComparison],
    units: &[Units],
    part: f64,
) -> (Vec<OverAll>, Option<Settles>) {
    let mut judged: Vec<_> = cases
        .iter_mut()
        .zip(units)
        .filter(|(case, _)| case.no_verdict.is_none() && !case.metrics.is_empty())
        .collect();
    // Each flow of a case is a case of its own to the statistics.
    let mut numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let mut questions: Vec<statistics::Question> = Vec::new();
    for (index, (case, [base, new])) in judged.iter().enumerate() {
        for metric in &case.metrics {
            let next = numbers.len();
            questions.push(statistics::Question {
                case: *numbers.entry((index, &metric.flow)).or_insert(next),
                metric: metric.metric as usize,
                base: Figures { units: base, values: &metric.base },
                new: Figures { units: new, values: &metric.new },
                margin: metric.margin,
                higher_is_better: metric.higher_is_better,
            });
        }
    }
    let judgement = judge(&questions, part);
    let Some((count, observation)) = judged
        .iter()
        .map(|(case, _)| (case.base_count.min(case.new_count), case.observation))
        .min_by_key(|(count, _)| *count)
    else {
        return (Vec::new(), None);
    };
    let mut answers = judgement.by_case.iter();
    for (case, _) in &mut judged {
        for (metric, answer) in case.metrics.iter_mut().zip(&mut answers) {
            apply(metric, answer, case.observation);
        }
    }
    let settles = Settles {
        observation,
        count,
        over_all: reach(judgement.reach_over_all),
        by_case: reach(judgement.reach_by_case),
    };
    (over_all(&judgement, observation), Some(settles))
}

fn reach(reach: statistics::Reach) -> Reach {
    Reach { questions: reach.questions, settled: reach.settled, needed: reach.needed }
}

fn over_all(judgement: &Judgement, observation: Observation) -> Vec<OverAll> {
    let of_metrics = judgement.over_all.iter().filter_map(|(pooled, answer)| {
        let metric = *Metric::ALL.get(pooled.metric)?;
        let (base, new) = (pooled.base.clone(), pooled.new.clone());
        let mut figures = MetricComparison::unjudged(metric, pooled.margin, base, new);
        (figures.unit, figures.ratio) = (String::new(), None);
        apply(&mut figures, answer, observation);
        Some(OverAll { cases: pooled.cases, figures })
    });
    of_metrics.collect()
}

fn word(verdict: statistics::Verdict) -> Verdict {
    match verdict {
        statistics::Verdict::Better => Verdict::Faster,
        statistics::Verdict::Equal => Verdict::Equal,
        statistics::Verdict::Worse => Verdict::Slower,
        statistics::Verdict::Unclear => Verdict::Unclear,
    }
}

fn apply(metric: &mut MetricComparison, answer: &Answer, observation: Observation) {
    if let Some(estimate) = answer.estimate {
        metric.ratio = Some(estimate.ratio);
        if estimate.high.is_finite() {
            (metric.low, metric.high) = (Some(estimate.low), Some(estimate.high));
        }
    }
    metric.p_corrected = answer.p_corrected;
    metric.verdict = word(answer.verdict);
    let what = observation.name();
    let Some(unsettled) = answer.unsettled else {
        return;
    };
    let (why, about) = match unsettled {
        _ if metric.ratio.is_none() => {
            metric.note = Some("the base's median is 0, so there is no ratio".to_owned());
            return;
        }
        Unsettled::TooFew { needed } => {
            metric.note = Some(format!("needs at least {needed} {what} a side"));
            metric.settled_with = Some(needed);
            return;
        }
        Unsettled::TooMany { questions, about } => {
            (format!("the sides differ, but among {questions} figures that may be chance"), about)
        }
        Unsettled::Noise { about } => (format!("the {what} scatter too much"), about),
    };
    metric.note = Some(match about {
        Some(about) => format!("{why}; about {about} {what} a side may settle it"),
        None => format!("{why}; no practical number of {what} settles it"),
    });
    metric.settled_with = about;
}

/// What turns say of one metric. Unclear between the looks that are planned; `is_last` where no other round comes. Few rounds
/// have no interval: it would be everything. Between looks it is that of the next one.
pub(crate) fn judge_in_turns(
    unjudged: MetricComparison,
    turns: &[Turn],
    looks: &InterimAnalyses,
    is_last: bool,
) -> MetricComparison {
    let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let mut metric = unjudged;
    if let Some(estimate) = ratio_in_turns(turns, looks.tail(count)) {
        metric.ratio = Some(estimate.ratio);
        if estimate.low > 0.0 && estimate.high.is_finite() {
            (metric.low, metric.high) = (Some(estimate.low), Some(estimate.high));
        }
        if looks.is_due(count, is_last) {
            metric.verdict = word(verdict(&estimate, metric.margin, metric.higher_is_better));
        }
    }
    if count < FEWEST_PAIRS {
        metric.note = Some(format!("needs at least {FEWEST_PAIRS} rounds"));
        metric.settled_with = Some(FEWEST_PAIRS as usize);
    } else if is_last && metric.verdict == Verdict::Unclear {
        metric.note = Some(format!("{count} rounds did not settle it"));
    }
    metric
}
