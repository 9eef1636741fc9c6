//! A condition under which a sweep fails, as it is written.

use std::fmt;
use std::str::FromStr;

use settings::{TimeSpan, names};

use crate::observe::Metric;

/// A figure that is too low or too high: `gbit<90`, `p99>20us`, and of throughput `90%median`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    pub metric: Metric,
    pub relation: Relation,
    /// What the figure is compared with.
    pub limit: Limit,
}

names! {
    /// How a figure lies to a limit.
    Relation {
        AtMost = "<=",
        AtLeast = ">=",
        Below = "<",
        Above = ">",
    }
}

impl Relation {
    pub(super) fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Relation::AtMost => figure <= limit,
            Relation::AtLeast => figure >= limit,
            Relation::Below => figure < limit,
            Relation::Above => figure > limit,
        }
    }
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A figure in the metric's unit.
    Value(f64),
    /// A share, 0 to 1, of the median of all flows with the same settings.
    OfMedian(f64),
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ConditionError {
    #[error(
        "`{0}` is not a condition: write a metric, one of < <= > >=, and a limit, such as gbit<90 or p99>20us"
    )]
    Syntax(String),
    #[error("`{name}` is not a metric of a condition: metrics are {}", Condition::metrics())]
    Metric { name: String },
    #[error("`{0}` is not a time: write a number with ns, us, ms or s, above 0")]
    Time(String),
    #[error("`{text}` is not a limit of {name}: write a number above 0{}", unit_words(.unit))]
    Number { text: String, name: &'static str, unit: &'static str },
    #[error(
        "`{0}` is not a threshold: write 90% or 90%median (of the median of all flows), 90%link (of what the link allows) \
         or 40Gb (10^9 bits a second)"
    )]
    Least(String),
    #[error("`{0}` is not above 0 %: no flow could be below it")]
    NotAboveZero(String),
    #[error("`{0}` is above 100 %, which flows need not reach: write at most 100%")]
    AboveAll(String),
}

impl Condition {
    /// The figures that a condition may be of, as a person types them.
    pub fn metrics() -> String {
        let names: Vec<&str> = Metric::ALL
            .iter()
            .filter(|it| !it.is_of_search())
            .map(|metric| metric.short_name())
            .collect();
        names.join(", ")
    }
}

fn unit_words(unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit => format!(", in {unit}"),
    }
}

/// A number without a sign or an exponent.
fn number(digits: &str) -> Option<f64> {
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse().ok().filter(|value: &f64| value.is_finite()).filter(|_| is_plain)
}

/// The name of the metric, the relation, and the limit.
fn split(text: &str) -> Option<(&str, Relation, &str)> {
    let (name, rest) = text.split_at(text.find(['<', '>'])?);
    let (relation, limit) = Relation::ALL
        .iter()
        .find_map(|relation| Some((*relation, rest.strip_prefix(relation.name())?)))?;
    let (name, limit) = (name.trim(), limit.trim());
    (!name.is_empty() && !limit.is_empty()).then_some((name, relation, limit))
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let (name, relation, limit) =
            split(text).ok_or_else(|| ConditionError::Syntax(text.to_owned()))?;
        let metric = Metric::from_name(name)
            .filter(|metric| !metric.is_of_search())
            .ok_or_else(|| ConditionError::Metric { name: name.to_owned() })?;
        let limit = match metric.unit() {
            "ns" => {
                let span = limit.parse::<TimeSpan>().ok().filter(|it| it.ns() > 0);
                // A bare number would be seconds.
                span.filter(|_| limit.ends_with('s'))
                    .ok_or_else(|| ConditionError::Time(limit.to_owned()))?
                    .ns() as f64
            }
            unit => {
                let digits = limit.strip_suffix(unit).unwrap_or(limit).trim_end();
                number(digits).filter(|value| *value > 0.0).ok_or_else(|| {
                    ConditionError::Number {
                        text: limit.to_owned(),
                        name: metric.short_name(),
                        unit,
                    }
                })?
            }
        };
        Ok(Condition {
            text: text.split_whitespace().collect(),
            metric,
            relation,
            limit: Limit::Value(limit),
        })
    }
}

/// The number that `text` gives by these digits.
fn above_zero(digits: &str, text: &str) -> Result<f64, ConditionError> {
    match number(digits) {
        Some(value) if value > 0.0 => Ok(value),
        Some(_) => Err(ConditionError::NotAboveZero(text.to_owned())),
        None => Err(ConditionError::Least(text.to_owned())),
    }
}

impl Condition {
    /// That of a throughput below what each flow must reach: `90%`, `90%median`, `90%link`, `40Gb`.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn below(text: &str) -> Result<Condition, ConditionError> {
        let (metric, limit) = match (text.strip_suffix("Gb"), text.split_once('%')) {
            (Some(digits), _) => (Metric::GbitPerS, Limit::Value(above_zero(digits, text)?)),
            (None, Some((digits, of))) => {
                let percent = above_zero(digits, text)?;
                if percent > 100.0 {
                    return Err(ConditionError::AboveAll(text.to_owned()));
                }
                match of {
                    "" | "median" => (Metric::GbitPerS, Limit::OfMedian(percent / 100.0)),
                    "link" => (Metric::PercentOfLimit, Limit::Value(percent)),
                    _ => return Err(ConditionError::Least(text.to_owned())),
                }
            }
            (None, None) => return Err(ConditionError::Least(text.to_owned())),
        };
        Ok(Condition { text: text.to_owned(), metric, relation: Relation::Below, limit })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::{has, rows};

    #[test]
    fn conditions_are_read() {
        use Relation::{Above, AtLeast, AtMost, Below};
        for (text, metric, relation, limit) in [
            ("gbit<90", Metric::GbitPerS, Below, 90.0),
            ("gbit < 90Gb/s", Metric::GbitPerS, Below, 90.0),
            ("bandwidth<=90", Metric::GbitPerS, AtMost, 90.0),
            ("p99>20us", Metric::P99Ns, Above, 20e3),
            ("p99.9>=1.5ms", Metric::P99_9Ns, AtLeast, 1.5e6),
            ("jain<0.98", Metric::Fairness, Below, 0.98),
            ("setup>4ms", Metric::SetupP99Ns, Above, 4e6),
            ("cpu>0.25", Metric::CpuSecondsPerGb, Above, 0.25),
        ] {
            let read: Condition = text.parse().unwrap();
            let found = (read.metric, read.relation, read.limit);
            assert_eq!(found, (metric, relation, Limit::Value(limit)), "{text}");
        }
        let condition: Condition = "p99 > 20us".parse().unwrap();
        assert_eq!(condition.to_string(), "p99>20us");
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

    #[test]
    fn thresholds_are_conditions_of_throughput() {
        let (gbit, limit) = (Metric::GbitPerS, Metric::PercentOfLimit);
        for (text, metric, limit) in [
            ("90%", gbit, Limit::OfMedian(0.9)),
            ("92.5%median", gbit, Limit::OfMedian(0.925)),
            ("100%link", limit, Limit::Value(100.0)),
            ("40Gb", gbit, Limit::Value(40.0)),
            ("0.5Gb", gbit, Limit::Value(0.5)),
        ] {
            let read = Condition::below(text).unwrap();
            let found = (read.metric, read.relation, read.limit);
            assert_eq!(found, (metric, Relation::Below, limit), "{text}");
            assert_eq!(read.to_string(), text);
        }
        let error = |text: &str| Condition::below(text).unwrap_err().to_string();
        for text in [
            "", "90", "%", "-5%", "90%peer", "40", "40GB", "nanGb", "infGb", "1e3Gb", "9 0%", "+5%",
        ] {
            has(error(text), ["write 90% or 90%median"]);
        }
        for (text, words) in
            [("0%", "not above 0"), ("0Gb", "not above 0"), ("101%", "at most 100%")]
        {
            has(error(text), [words]);
        }
    }
}
