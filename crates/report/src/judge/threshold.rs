//! What is demanded of each flow of a sweep (`--fail-below`, `--fail-if`), and which flows do not keep it. What cannot be judged
//! has not passed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::str::FromStr;

use settings::{Settings, TimeSpan, names};

use super::mesh::{groups, title};
use crate::observe::{Metric, format::plural, standing};
use results::model::{CaseResult, FlowConfig, FlowResult, ResultFile, Run};
use statistics::median;

/// A case, or all rounds of a pattern, with its flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite<'a> {
    pub title: String,
    pub cases: Vec<&'a CaseResult>,
    /// Its flows, in the order of the cases.
    pub flows: Vec<Judged>,
}

/// A flow, and whether it keeps what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub name: String,
    /// Payload throughput in 10^9 bits a second, over UC and UD of what was received, the median over the runs that count; `None` where none does.
    pub gbit_per_s: Option<f64>,
    /// Why it has not passed, in words; `None` where it has.
    pub failure: Option<String>,
    /// Whether a figure breaks a condition; otherwise what has not passed could not be judged.
    pub is_broken: bool,
}

/// A flow with the runs that count; of set-up, which is none, with the runs alone.
struct Measured<'a> {
    name: &'a str,
    settings: Option<Settings>,
    runs: Vec<(&'a Run, Option<&'a FlowResult>)>,
}

/// Judges all flows of a sweep, and set-up or steps where conditions are about them; where nothing is demanded each must have a figure.
pub fn judge<'a>(file: &'a ResultFile, demands: &Demands) -> Vec<Suite<'a>> {
    groups(file)
        .into_iter()
        .map(|cases| {
            let flows = cases.iter().flat_map(|case| flows(case));
            let whole_runs = cases.iter().filter_map(|case| whole_run(case, demands));
            let measured = each_once(flows.chain(whole_runs));
            let usual = medians(&measured);
            let mut judged: Vec<Judged> =
                (measured.iter()).map(|flow| flow.judged(demands, &usual)).collect();
            if judged.is_empty() {
                judged.push(Judged {
                    name: "flows".to_owned(),
                    gbit_per_s: None,
                    failure: Some("no flow has a throughput to judge".to_owned()),
                    is_broken: false,
                });
            }
            Suite { title: title(&cases), cases, flows: judged }
        })
        .collect()
}

/// Each flow once, with its runs of all rounds: what looks slow is measured in further ones.
fn each_once<'a>(flows: impl Iterator<Item = Measured<'a>>) -> Vec<Measured<'a>> {
    let (mut measured, mut places) = (Vec::<Measured<'_>>::new(), HashMap::new());
    for flow in flows {
        match places.entry(flow.name) {
            Entry::Occupied(place) => {
                let known: &mut Measured<'_> = &mut measured[*place.get()];
                known.runs.extend(flow.runs);
            }
            Entry::Vacant(place) => {
                place.insert(measured.len());
                measured.push(flow);
            }
        }
    }
    measured
}

fn flows(case: &CaseResult) -> impl Iterator<Item = Measured<'_>> {
    case.config.flows.iter().enumerate().map(move |(index, config): (usize, &FlowConfig)| {
        Measured {
            name: &config.name,
            settings: Some(case.config.flow(index)),
            runs: case
                .runs
                .iter()
                .filter_map(|run| {
                    let flow = flow_at(run, index, &config.name)?;
                    standing::counts(run, flow).then_some((run, Some(flow)))
                })
                .collect(),
        }
    })
}

/// A run's flows are in the order of the case's, which saves looking for each of thousands.
fn flow_at<'a>(run: &'a Run, index: usize, name: &str) -> Option<&'a FlowResult> {
    run.flows.get(index).filter(|flow| flow.name == name).or_else(|| run.flow(name))
}

/// Set-up or steps, as far as conditions are about them, or where nothing else of the case could be judged.
fn whole_run<'a>(case: &'a CaseResult, demands: &Demands) -> Option<Measured<'a>> {
    let is_asked = demands.fail_if.iter().any(|it| it.metric.is_of_run());
    let is_alone = case.config.flows.is_empty() && demands.below.is_none();
    let runs = case.runs.iter().filter(|run| standing::run_counts(run));
    let has_steps = case.config.lock_step;
    ((case.config.is_set_up() || has_steps) && (is_asked || is_alone)).then(|| Measured {
        name: if has_steps { "steps" } else { "set-up" },
        settings: None,
        runs: runs.map(|run| (run, None)).collect(),
    })
}

/// The medians of the throughputs of flows with equal settings, where there are two or more.
type Usual<'a> = Vec<(&'a Settings, Option<f64>)>;

fn medians<'f>(flows: &'f [Measured<'_>]) -> Usual<'f> {
    let mut alike: Vec<(&Settings, Vec<f64>)> = Vec::new();
    for flow in flows {
        let (Some(settings), Some(figure)) = (&flow.settings, flow.median(Metric::GbitPerS)) else {
            continue;
        };
        match alike.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, figures)) => figures.push(figure),
            None => alike.push((settings, vec![figure])),
        }
    }
    alike
        .into_iter()
        .map(|(settings, figures)| (settings, median(&figures).filter(|_| figures.len() > 1)))
        .collect()
}

impl Measured<'_> {
    fn median(&self, metric: Metric) -> Option<f64> {
        let figures = self.runs.iter().map(|(run, flow)| metric.of(run, *flow));
        median(&figures.flatten().collect::<Vec<f64>>())
    }

    fn judged(&self, demands: &Demands, usual: &Usual<'_>) -> Judged {
        let gbit_per_s = self.median(Metric::GbitPerS);
        let has_figure = match &self.settings {
            Some(_) => gbit_per_s.is_some(),
            None => !self.runs.is_empty(),
        };
        let about_it = demands.conditions().filter(|it| self.is_asked(it.metric));
        let failures: Vec<Result<String, String>> = if has_figure {
            about_it.filter_map(|it| self.failure(it, usual).transpose()).collect()
        } else {
            vec![Err("no run counts".to_owned())]
        };
        let is_broken = failures.iter().any(Result::is_ok);
        let words = failures.into_iter().map(|it| it.unwrap_or_else(|unknown| unknown));
        let sentences: Vec<String> = words.collect();
        Judged {
            name: self.name.to_owned(),
            gbit_per_s,
            failure: (!sentences.is_empty()).then(|| sentences.join(", and ")),
            is_broken,
        }
    }

    /// Whether a condition on a metric is about it. A QP alone shares with none.
    fn is_asked(&self, metric: Metric) -> bool {
        match &self.settings {
            Some(settings) if metric == Metric::Fairness => settings.qps > 1,
            settings => metric.is_of_run() == settings.is_none(),
        }
    }

    /// How a figure breaks a condition, in words; `None` where it does not.
    ///
    /// # Errors
    /// Why that is not known.
    fn failure(&self, condition: &Condition, usual: &Usual<'_>) -> Result<Option<String>, String> {
        let (metric, relation) = (condition.metric, condition.relation);
        let figure = self.median(metric).ok_or_else(|| self.unknown(metric))?;
        let (limit, of) = match condition.limit {
            Limit::Value(limit) => (limit, String::new()),
            Limit::OfMedian(share) => {
                let settings = self.settings.as_ref();
                let alike = usual.iter().find(|(known, _)| Some(*known) == settings);
                let middle = alike.and_then(|(_, middle)| *middle).ok_or(
                    "no other flow has the same settings, so there is no median: give Gb or %link",
                )?;
                let percent = (share * 1e6).round() / 1e4;
                (share * middle, format!(" ({percent} % of the median)"))
            }
        };
        if !relation.holds(figure, limit) {
            return Ok(None);
        }
        let [shown, most] = [figure, limit].map(|value| metric.text(value));
        let differs_in_later_digits = shown == most && figure != limit;
        let shown = if differs_in_later_digits { figure.to_string() } else { shown };
        let what = match metric {
            Metric::PercentOfLimit => format!("{shown} of its link's limit"),
            metric => format!("{} {shown}", metric.short_name()),
        };
        Ok(Some(format!("{what}, {} {most}{of}", relation.words())))
    }

    /// Why a figure of it is not known.
    fn unknown(&self, metric: Metric) -> String {
        let name = metric.short_name();
        let timed = match metric {
            _ if metric.is_of_setup() => "rounds",
            _ if metric.is_of_steps() => "steps",
            _ => "messages",
        };
        if metric == Metric::PercentOfLimit {
            "its link speed is unknown: give Gb or %median".to_owned()
        } else if self.runs.iter().any(|(run, flow)| metric.has_samples(run, *flow)) {
            format!("{name} is unknown: too few {timed} were timed; measure more (-D, -n)")
        } else {
            format!("{name} was not measured")
        }
    }
}

/// Flows that a sentence names.
const MOST_FLOWS: usize = 5;

/// The flows that failed, in one sentence; `None` if all passed.
pub fn failing(suites: &[Suite<'_>]) -> Option<String> {
    let flows: usize = suites.iter().map(|suite| suite.flows.len()).sum();
    let mut failed = Vec::new();
    for suite in suites {
        let title = if suites.len() == 1 { String::new() } else { format!("{}, ", suite.title) };
        failed.extend(
            suite.flows.iter().filter_map(|flow| {
                Some(format!("{title}{}: {}", flow.name, flow.failure.as_ref()?))
            }),
        );
    }
    let count = failed.len();
    let verb = if count == 1 { "fails" } else { "fail" };
    if count > MOST_FLOWS {
        failed.truncate(MOST_FLOWS);
        failed.push(format!("and {} more", count - MOST_FLOWS));
    }
    let (noun, named) = (plural(flows, "flow"), failed.join("; "));
    (count > 0).then(|| format!("{count} of {flows} {noun} {verb}: {named}"))
}

/// What each flow must keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// A throughput that it must reach.
    pub below: Option<Condition>,
    /// Conditions that must not be true of it.
    pub fail_if: Vec<Condition>,
}

impl Demands {
    pub fn are_none(&self) -> bool {
        self.conditions().next().is_none()
    }

    /// Each demand alone.
    pub fn each(&self) -> impl Iterator<Item = Demands> + '_ {
        let below =
            self.below.iter().map(|it| Demands { below: Some(it.clone()), ..Demands::default() });
        let fail_if = self
            .fail_if
            .iter()
            .map(|it| Demands { fail_if: vec![it.clone()], ..Demands::default() });
        below.chain(fail_if)
    }

    /// All conditions, that of throughput first.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.below.iter().chain(&self.fail_if)
    }

    /// Each as an option without its dashes, and its value.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let below = self.below.iter().map(|it| ("fail-below", it.to_string()));
        let fail_if = self.fail_if.iter().map(|it| ("fail-if", it.to_string()));
        below.chain(fail_if)
    }
}

impl fmt::Display for Demands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options().map(|(option, value)| format!("--{option} {value}"));
        f.write_str(&options.collect::<Vec<_>>().join(" "))
    }
}

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

    /// How a figure lies to a limit of which this is true.
    fn words(self) -> &'static str {
        match self {
            Relation::AtMost => "not above",
            Relation::AtLeast => "not below",
            Relation::Below => "below",
            Relation::Above => "above",
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
#[path = "threshold_tests.rs"]
mod tests;
