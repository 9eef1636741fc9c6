//! A condition under which a sweep fails, as it is written. It must not know results.

use std::fmt;
use std::str::FromStr;

use settings::TimeSpan;

use crate::observe::Metric;

/// A figure that is too low or too high: `gbit<90`, `p99>20us`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    metric: Metric,
    relation: Relation,
    /// In the metric's unit.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Relation {
    fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Relation::Below => figure < limit,
            Relation::AtMost => figure <= limit,
            Relation::Above => figure > limit,
            Relation::AtLeast => figure >= limit,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Relation::Below => "below",
            Relation::AtMost => "not above",
            Relation::Above => "above",
            Relation::AtLeast => "not below",
        }
    }
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ConditionError {
    #[error(
        "`{0}` is not a condition: write a metric, one of < <= > >=, and a limit, such as gbit<90 or p99>20us"
    )]
    Syntax(String),
    #[error("`{name}` is not a metric of a condition: metrics are {}", names())]
    Metric { name: String },
    #[error("`{0}` is not a time: write a number with ns, us, ms or s, above 0")]
    Time(String),
    #[error("`{text}` is not a limit of {name}: write a number above 0{}", unit_words(.unit))]
    Number {
        text: String,
        name: &'static str,
        unit: &'static str,
    },
}

fn names() -> String {
    let metrics = Metric::ALL.iter().filter(|it| !it.is_of_search());
    let names: Vec<&str> = metrics.map(|metric| metric.short_name()).collect();
    names.join(", ")
}

fn unit_words(unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit => format!(", in {unit}"),
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let syntax = || ConditionError::Syntax(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(syntax)?;
        let (name, rest) = text.split_at(at);
        let relations = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Below),
            (">", Relation::Above),
        ];
        let found = relations
            .into_iter()
            .find_map(|(sign, relation)| Some((rest.strip_prefix(sign)?, relation)));
        let (limit, relation) = found.ok_or_else(syntax)?;
        let (name, limit) = (name.trim(), limit.trim());
        if name.is_empty() || limit.is_empty() {
            return Err(syntax());
        }
        let known = Metric::from_name(name).filter(|metric| !metric.is_of_search());
        let metric = known.ok_or_else(|| ConditionError::Metric {
            name: name.to_owned(),
        })?;
        let limit = match metric.unit() {
            "ns" => {
                let span = limit.parse::<TimeSpan>().ok().filter(|it| it.ns() > 0);
                // A bare number would be seconds.
                let span = span.filter(|_| limit.ends_with('s'));
                span.ok_or_else(|| ConditionError::Time(limit.to_owned()))?
                    .ns() as f64
            }
            unit => number(limit, unit).ok_or_else(|| ConditionError::Number {
                text: limit.to_owned(),
                name: metric.short_name(),
                unit,
            })?,
        };
        Ok(Condition {
            text: text.split_whitespace().collect(),
            metric,
            relation,
            limit,
        })
    }
}

/// A number above 0, which may have its unit behind it.
fn number(text: &str, unit: &str) -> Option<f64> {
    let digits = text.strip_suffix(unit).unwrap_or(text).trim_end();
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value: f64 = digits.parse().ok()?;
    (is_plain && value.is_finite() && value > 0.0).then_some(value)
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// What it is about.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Why a figure, in the metric's unit, makes a sweep fail: `p99 35.0 µs, above 20.0 µs`; `None` where it does not.
    pub fn failure(&self, figure: f64) -> Option<String> {
        let holds = self.relation.holds(figure, self.limit);
        let text = |value| self.metric.text(value);
        holds.then(|| {
            let (words, limit) = (self.relation.words(), text(self.limit));
            let figure = match text(figure) {
                // What differs in later digits only.
                same if same == limit && figure != self.limit => format!("{figure}"),
                shown => shown,
            };
            format!("{} {figure}, {words} {limit}", self.metric.short_name())
        })
    }

    /// Why a sweep fails that has no such figure; `has_samples` where there were too few messages for it.
    pub fn unknown(&self, has_samples: bool) -> String {
        match has_samples {
            true => {
                let what = match self.metric.is_of_setup() {
                    true => "rounds",
                    false => "messages",
                };
                format!(
                    "{} is not known: too few {what} were timed, measure more of them (-D, -n)",
                    self.metric.short_name()
                )
            }
            false => format!("{} was not measured", self.metric.short_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{has, rows};

    #[test]
    fn conditions_are_read_and_told() {
        for [text, metric, figure, told] in rows(
            "
gbit<90 | bandwidth | 89.5 | bandwidth 89.500 Gb/s, below 90.000 Gb/s
gbit < 90Gb/s | bandwidth | 89.5 | bandwidth 89.500 Gb/s, below 90.000 Gb/s
bandwidth<=90 | bandwidth | 90 | bandwidth 90.000 Gb/s, not above 90.000 Gb/s
p99>20us | p99 | 35000 | p99 35.0 µs, above 20.0 µs
p99.9>=1.5ms | p99.9 | 1.5e6 | p99.9 1.50 ms, not below 1.50 ms
jain<0.98 | fairness | 0.5 | fairness 0.500, below 0.980
setup>4ms | setup | 4.1e6 | setup 4.10 ms, above 4.00 ms
cpu>0.25 | cpu | 0.3 | cpu 0.300 s/GB, above 0.250 s/GB
",
        ) {
            let condition: Condition = text.parse().unwrap();
            let metric = Metric::from_name(metric);
            assert_eq!(Some(condition.metric()), metric, "{text}");
            let failure = condition.failure(figure.parse().unwrap());
            assert_eq!(failure.as_deref(), Some(told));
        }
        let condition: Condition = "p99 > 20us".parse().unwrap();
        assert_eq!(condition.to_string(), "p99>20us");
        assert_eq!(condition.failure(20_000.0), None);
    }

    #[test]
    fn what_is_none_says_what_there_is() {
        for [text, words] in rows(
            "
gbit | such as gbit<90
gbit=90 | such as gbit<90
<90 | such as gbit<90
gbit< | such as gbit<90
speed<90 | `speed` is not a metric of a condition: metrics are bandwidth, rate, p50, p99, p99.9, fairness, cpu,
load<90 | `load` is not a metric
p99>20 | write a number with ns, us, ms or s
p99>0us | above 0
gbit<-1 | `-1` is not a limit of bandwidth: write a number above 0, in Gb/s
gbit<0 | above 0
gbit<>3 | `>3` is not a limit
jain<nan | `nan` is not a limit of fairness: write a number above 0
",
        ) {
            has(text.parse::<Condition>().unwrap_err().to_string(), [words]);
        }
        assert!("".parse::<Condition>().is_err());
    }
}
