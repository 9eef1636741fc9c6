//! The words for what was read: each metric over all cases, then each figure of each case.

use std::collections::HashMap;

use super::model::{
    CaseComparison, MetricComparison, Observation, OverAll, Reach, Settles, Verdict,
};
use crate::observe::metric::Metric;
use statistics::{self, Answer, Figures, Judgement, Question, Unit, Unsettled};

/// Which runs a case's figures are of: those of the base, those of the new side.
pub(super) type Units = [Vec<Unit>; 2];

#[derive(Default)]
pub(super) struct Over {
    pub(super) over_all: Vec<OverAll>,
    pub(super) reach: Option<Settles>,
}

/// Judges all metrics of all cases together that are to be judged; `part` as of [`statistics::judge`].
pub(super) fn judge(cases: &mut [CaseComparison], units: &[Units], part: f64) -> Over {
    let mut judged: Vec<_> = cases
        .iter_mut()
        .zip(units)
        .filter(|(case, _)| case.no_verdict.is_none() && !case.metrics.is_empty())
        .collect();
    // Each flow of a case is a case of its own to the statistics.
    let mut numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let mut questions: Vec<Question> = Vec::new();
    for (index, (case, units)) in judged.iter().enumerate() {
        for metric in &case.metrics {
            let next = numbers.len();
            let number = *numbers.entry((index, &metric.flow)).or_insert(next);
            questions.push(question(number, metric, units));
        }
    }
    let judgement = statistics::judge(&questions, part);
    let Some((count, observation)) = judged
        .iter()
        .map(|(case, _)| (case.base_count.min(case.new_count), case.observation))
        .min_by_key(|(count, _)| *count)
    else {
        return Over::default();
    };
    let mut answers = judgement.by_case.iter();
    for (case, _) in &mut judged {
        let observation = case.observation;
        for (metric, answer) in case.metrics.iter_mut().zip(&mut answers) {
            apply(metric, answer, observation);
        }
    }
    over(&judgement, count, observation)
}

fn question<'a>(case: usize, metric: &'a MetricComparison, [base, new]: &'a Units) -> Question<'a> {
    Question {
        case,
        metric: metric.metric as usize,
        base: Figures { units: base, values: &metric.base },
        new: Figures { units: new, values: &metric.new },
        margin: metric.margin,
        higher_is_better: metric.higher_is_better,
    }
}

fn over(judgement: &Judgement, count: usize, observation: Observation) -> Over {
    let over_all = judgement.over_all.iter().filter_map(|(pooled, answer)| {
        let metric = *Metric::ALL.get(pooled.metric)?;
        let (base, new) = (pooled.base.clone(), pooled.new.clone());
        let mut figures = MetricComparison::unjudged(metric, pooled.margin, base, new);
        (figures.unit, figures.ratio) = (String::new(), None);
        apply(&mut figures, answer, observation);
        Some(OverAll { cases: pooled.cases, figures })
    });
    Over {
        over_all: over_all.collect(),
        reach: Some(Settles {
            observation,
            count,
            over_all: judgement.reach_over_all.into(),
            by_case: judgement.reach_by_case.into(),
        }),
    }
}

impl From<statistics::Reach> for Reach {
    fn from(reach: statistics::Reach) -> Reach {
        Reach { questions: reach.questions, settled: reach.settled, needed: reach.needed }
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
    metric.verdict = match answer.verdict {
        statistics::Verdict::Better => Verdict::Improved,
        statistics::Verdict::Equal => Verdict::Equal,
        statistics::Verdict::Worse => Verdict::Regressed,
        statistics::Verdict::Unclear => Verdict::Unclear,
    };
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
