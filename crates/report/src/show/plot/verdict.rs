//! What a comparison comes to, in one sentence for the top of the page. It must not know figures.

use crate::judge::compare::{CaseComparison, Comparison, MetricComparison, Verdict};
use crate::observe::Metric;
use crate::observe::format::plural;
use crate::results::model::subject;
use crate::show::plot::draw::number;

/// How many cases regressed and improved, and the worst of them; `None` where no case is on both sides.
pub fn sentence(comparison: &Comparison) -> Option<String> {
    let cases = &comparison.cases;
    let has = |case: &&CaseComparison, verdict| {
        let mut metrics = case.metrics.iter();
        metrics.any(|metric| metric.verdict == verdict)
    };
    let count = |verdict| cases.iter().filter(|case| has(case, verdict)).count();
    let all = cases.len();
    if all == 0 {
        return None;
    }
    let regressed = count(Verdict::Regressed);
    let judged = cases.iter().filter(|case| {
        // Shares of QPs are nearly always equal, which says nothing about speed.
        let says_little = |metric: &MetricComparison| {
            metric.metric == Metric::Fairness
                && metric.verdict == Verdict::Equal
                && case.metrics.len() > 1
        };
        let mut metrics = case.metrics.iter();
        metrics.any(|metric| {
            !says_little(metric)
                && !matches!(
                    metric.verdict,
                    Verdict::Unclear | Verdict::NoVerdict | Verdict::NotComparable
                )
        })
    });
    let judged = judged.count();
    let base = &comparison.base.name;
    if judged == 0 {
        return Some(format!(
            "Compared with {base}, all is unclear: the figures of {all} {} do not show whether anything changed.",
            plural(all, "case")
        ));
    }
    let of_all = format!("of {all} {}", plural(all, "case"));
    let mut text = match regressed {
        0 => format!("Compared with {base}, none {of_all} regressed"),
        some => format!("Compared with {base}, {some} {of_all} regressed"),
    };
    let improved = count(Verdict::Improved);
    if improved > 0 {
        text.push_str(&format!(", {improved} improved"));
    }
    if judged < all {
        text.push_str(&format!(", {} unclear", all - judged));
    }
    if let Some((case, metric)) = worst(comparison) {
        let percent = metric.ratio.map_or(0.0, |ratio| (ratio - 1.0) * 100.0);
        text.push_str(&format!(
            "; the worst is {} of {}: {}{}\u{a0}%",
            metric.metric.short_name(),
            subject(&case.config, &case.id, &metric.flow),
            if percent >= 0.0 { "+" } else { "" },
            number::fixed(percent, 1)
        ));
    }
    Some(format!("{text}."))
}

/// The regression that is furthest from 1.
fn worst(comparison: &Comparison) -> Option<(&CaseComparison, &MetricComparison)> {
    let metrics = comparison
        .cases
        .iter()
        .flat_map(|case| case.metrics.iter().map(move |metric| (case, metric)));
    let far = |metric: &MetricComparison| metric.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    metrics
        .filter(|(_, metric)| metric.verdict == Verdict::Regressed)
        .max_by(|one, other| far(one.1).total_cmp(&far(other.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::has;

    fn case(id: &str, ratio: f64, verdict: Verdict) -> CaseComparison {
        let metric = MetricComparison {
            verdict,
            ..MetricComparison::unjudged(Metric::GbitPerS, 0.03, vec![1.0], vec![ratio])
        };
        CaseComparison {
            id: id.to_owned(),
            metrics: vec![metric],
            ..CaseComparison::default()
        }
    }

    #[test]
    fn the_worst_regression_is_named_with_its_flow() {
        let mut worst = case("a", 0.5, Verdict::Regressed);
        worst.config = crate::results::sample::mixed().cases.remove(0).config;
        worst.metrics[0].flow = "large".to_owned();
        let mut comparison = Comparison::default();
        assert_eq!(sentence(&comparison), None);
        comparison.cases = vec![worst];
        let words = "bandwidth of a, flow large: −50.0";
        has(sentence(&comparison).unwrap(), [words]);
        comparison.base.name = "old".to_owned();
        comparison.cases = vec![
            case("a", 0.95, Verdict::Regressed),
            case("b", 0.8, Verdict::Regressed),
            case("c", 1.2, Verdict::Improved),
            case("d", 0.9, Verdict::Unclear),
        ];
        let told = "Compared with old, 2 of 4 cases regressed, 1 improved, 1 unclear; the worst is bandwidth of \
             b: −20.0\u{a0}%.";
        assert_eq!(sentence(&comparison).unwrap(), told);
        comparison.cases.truncate(0);
        comparison.cases.push(case("d", 0.9, Verdict::Unclear));
        has(sentence(&comparison).unwrap(), ["all is unclear"]);
        comparison.cases[0].metrics.push(MetricComparison {
            metric: Metric::Fairness,
            ..case("d", 1.0, Verdict::Equal).metrics.remove(0)
        });
        has(sentence(&comparison).unwrap(), ["all is unclear"]);
        comparison.cases[0].metrics[1].verdict = Verdict::Regressed;
        has(sentence(&comparison).unwrap(), ["1 of 1 case regressed"]);
        comparison.cases[0].metrics.remove(0);
        comparison.cases[0].metrics[0].verdict = Verdict::Equal;
        has(sentence(&comparison).unwrap(), ["none of 1 case regressed"]);
    }
}
