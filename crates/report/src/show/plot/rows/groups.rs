//! Charts of lines: what differs names the lines, what tells charts apart heads them, and what all share is said once. It
//! must not know what is drawn of a case, nor how lines were chosen.

use std::collections::BTreeSet;

use super::sample::Sample;
use super::settings::{Setting, minute};
use crate::observe::standing::{self, LeftOut};
use crate::show::plot::draw::palette::{Look, look};

/// Cases that differ in the figure's horizontal axis only.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    /// Place on the axis and case, by place.
    pub(crate) points: Vec<(f64, Sample<'a>)>,
}

impl<'a> Line<'a> {
    /// The words for a setting that its cases share.
    pub(crate) fn value(&self, setting: Setting) -> &str {
        self.first()
            .map_or("", |sample| sample.value(setting).words.as_str())
    }

    fn first(&self) -> Option<&Sample<'a>> {
        self.points.first().map(|(_, sample)| sample)
    }

    pub(crate) fn is_of_base(&self) -> bool {
        self.first().is_some_and(|sample| sample.is_base)
    }
}

/// Lines of one chart.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    /// What tells this chart from the others of its figure.
    pub(crate) apart: Vec<String>,
}

/// The charts of one figure.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    pub(crate) groups: Vec<Group<'a>>,
    /// What is not drawn and why, for a reader.
    pub(crate) notes: Vec<String>,
    /// The settings that make a line.
    pub(crate) key: Vec<Setting>,
    /// Those of them that differ within a chart, which name the lines.
    pub(crate) inside: Vec<Setting>,
    /// Names of all lines, in the order of their settings.
    pub(crate) names: Vec<String>,
    /// The same without their sides: those of one name have one colour.
    pub(crate) looks: Vec<String>,
}

/// All values of a setting.
pub(crate) fn distinct<'s>(values: impl Iterator<Item = &'s str>) -> BTreeSet<&'s str> {
    values.collect()
}

/// The words for a value, or for what is usual where it has none.
pub(crate) fn plain(setting: Setting, words: &str) -> String {
    match words {
        "" => setting.usual(),
        words => words.to_owned(),
    }
}

/// A line's name by these settings.
pub(crate) fn name_by(line: &Line<'_>, settings: &[Setting]) -> String {
    let named = settings.iter();
    let words: Vec<String> = named
        .map(|setting| plain(*setting, line.value(*setting)))
        .filter(|words| !words.is_empty())
        .collect();
    if words.is_empty() {
        let of_case = [Setting::of("op"), Setting::of("cq")].map(|setting| line.value(setting));
        let of_case = of_case.into_iter().filter(|words| !words.is_empty());
        return of_case.collect::<Vec<_>>().join(", ");
    }
    words.join(", ")
}

/// What tells lines of two sides apart is not in their common name.
pub(crate) fn without_side(settings: &[Setting]) -> Vec<Setting> {
    let settings = settings.iter().copied();
    settings.filter(|it| *it != Setting::Side).collect()
}

impl<'a> Groups<'a> {
    /// Name of a line: what it does not share with the others.
    pub(crate) fn name(&self, line: &Line<'_>) -> String {
        name_by(line, &self.inside)
    }

    /// The look of a line, the same in all charts; the base's is like that of its new counterpart.
    pub(crate) fn look(&self, line: &Line<'_>) -> Look {
        let common = name_by(line, &without_side(&self.inside));
        let index = self.looks.iter().position(|name| *name == common);
        let own = look(index.unwrap_or_default());
        match line.is_of_base() {
            true => own.of_base(),
            false => own,
        }
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line<'a>> {
        self.groups.iter().flat_map(|group| &group.lines)
    }

    /// All lines, by what tells their chart and them.
    pub(crate) fn named_lines(&self) -> impl Iterator<Item = (String, &Line<'a>)> {
        self.groups.iter().flat_map(move |group| {
            group.lines.iter().map(move |line| {
                let name = self.name(line);
                match group.heading() {
                    heading if heading.is_empty() => (name, line),
                    heading => (format!("{heading}: {name}"), line),
                }
            })
        })
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample<'a>> {
        let points = self.lines().flat_map(|line| &line.points);
        points.map(|(_, sample)| sample)
    }

    /// What was measured on what: all that the lines share, when, and how often.
    pub(crate) fn subtitle(&self, axis: Setting) -> String {
        let mut parts = Vec::new();
        for setting in Setting::all() {
            if setting == axis || setting == Setting::Revision || setting == Setting::Side {
                continue;
            }
            let samples = self.samples();
            let mut values = distinct(samples.map(|sample| sample.value(setting).words.as_str()));
            if setting.always_has_words() && !self.key.contains(&setting) {
                // Without words there is no such setting, and nothing that differs.
                values.remove("");
            }
            match (values.len(), values.first()) {
                (0, _) | (1, Some(&"")) => {}
                (1, Some(&one)) => parts.push(one.to_owned()),
                (2, _) if !self.key.contains(&setting) => {
                    parts.push(values.into_iter().collect::<Vec<_>>().join(" or "));
                }
                _ if !self.key.contains(&setting) => {
                    parts.push(format!("{} varies", setting.name()));
                }
                _ => {}
            }
        }
        let files = || self.samples().flat_map(Sample::files);
        let started = || files().map(|loaded| minute(&loaded.result.started_at));
        let day = |minute: String| minute.chars().take(10).collect::<String>();
        if let (Some(first), Some(last)) = (started().min().map(day), started().max().map(day)) {
            parts.push(if first == last {
                first
            } else {
                format!("{first} to {last}")
            });
        }
        parts.push(self.runs());
        parts.join("\u{a0}· ")
    }

    fn runs(&self) -> String {
        // A case of several flows has several lines.
        let cases = || {
            let mut seen = BTreeSet::new();
            let all = self.samples().flat_map(Sample::launches);
            all.map(|launch| launch.flow.case)
                .filter(move |case| seen.insert(std::ptr::from_ref(*case)))
        };
        let range = |counts: BTreeSet<usize>, one: &str, many: &str| match (
            counts.first(),
            counts.last(),
        ) {
            (Some(1), Some(1)) => format!("1 {one}"),
            (Some(least), Some(most)) if least == most => format!("{most} {many}"),
            (Some(least), Some(most)) => format!("{least} to {most} {many}"),
            _ => String::new(),
        };
        let launches: BTreeSet<usize> = self.samples().map(|it| it.launches().count()).collect();
        let runs = range(cases().map(|case| case.runs.len()).collect(), "run", "runs");
        let mut text = match launches.last() {
            Some(2..) => format!("{} of {runs} a case", range(launches, "launch", "launches")),
            _ => format!("{runs} a case"),
        };
        let runs = cases().flat_map(|case| &case.runs);
        let reasons = LeftOut::of(runs.map(standing::of_run)).reasons();
        if !reasons.is_empty() {
            text.push_str(&format!(", left out: {}", reasons.join(", ")));
        }
        text
    }
}

impl Group<'_> {
    /// All places of the axis on which a case of the chart lies.
    pub(crate) fn places(&self) -> Vec<f64> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let mut places: Vec<f64> = points.map(|(place, _)| *place).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// What tells the chart from the others; empty of one alone.
    pub(crate) fn heading(&self) -> String {
        self.apart.join(", ")
    }
}
