//! Charts of lines: differences name the lines and head the charts, and what all share stands once.

use std::collections::BTreeSet;

use super::sample::Sample;
use super::settings::Setting;
use crate::observe::standing::{self, LeftOut};
use crate::results::model::CaseResult;
use crate::show::plot::draw::palette::{Look, look};

/// Cases that differ in the figure's horizontal axis only.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    /// Place on the axis and case, by place.
    pub(crate) points: Vec<(f64, Sample<'a>)>,
}

impl Line<'_> {
    /// The words for a setting that its cases share.
    pub(crate) fn value(&self, setting: Setting) -> &str {
        let first = self.points.first();
        first.map_or("", |(_, sample)| &sample.value(setting).words)
    }

    pub(crate) fn is_of_base(&self) -> bool {
        self.points.first().is_some_and(|(_, sample)| sample.is_base)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    /// Its heading among the charts of its figure; empty for a single one.
    pub(crate) heading: String,
}

#[derive(Debug)]
pub(crate) struct Groups<'a> {
    pub(crate) groups: Vec<Group<'a>>,
    /// What is not drawn and why, for a reader.
    pub(crate) notes: Vec<String>,
    pub(crate) key: Vec<Setting>,
    /// Those of them that differ within a chart, which name the lines.
    pub(crate) inside: Vec<Setting>,
    /// Names of all lines, in the order of their settings.
    pub(crate) names: Vec<String>,
    /// The same without their sides: those of one name have one colour.
    pub(crate) looks: Vec<String>,
}

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

pub(crate) fn name_by(line: &Line<'_>, settings: &[Setting]) -> String {
    let own = settings.iter().map(|it| plain(*it, line.value(*it)));
    let of_case = ["op", "cq"].map(|flag| line.value(Setting::of(flag)).to_owned());
    match joined(own) {
        name if name.is_empty() => joined(of_case),
        name => name,
    }
}

/// Those that are not empty, with commas.
pub(crate) fn joined(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The common name of lines of two sides leaves out their differences.
pub(crate) fn without_side(settings: &[Setting]) -> Vec<Setting> {
    settings.iter().copied().filter(|it| *it != Setting::Side).collect()
}

impl<'a> Groups<'a> {
    pub(crate) fn name(&self, line: &Line<'_>) -> String {
        name_by(line, &self.inside)
    }

    /// The look of a line, the same in all charts; the base's is like that of its new counterpart.
    pub(crate) fn look(&self, line: &Line<'_>) -> Look {
        let common = name_by(line, &without_side(&self.inside));
        let index = self.looks.iter().position(|name| *name == common);
        let own = look(index.unwrap_or_default());
        if line.is_of_base() { own.of_base() } else { own }
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line<'a>> {
        self.groups.iter().flat_map(|group| &group.lines)
    }

    /// All lines, by the heading of their chart and their name.
    pub(crate) fn named_lines(&self) -> impl Iterator<Item = (String, &Line<'a>)> {
        let lines =
            self.groups.iter().flat_map(|group| group.lines.iter().map(move |it| (group, it)));
        lines.map(|(group, line)| match (&*group.heading, self.name(line)) {
            ("", name) => (name, line),
            (heading, name) => (format!("{heading}: {name}"), line),
        })
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample<'a>> {
        self.lines().flat_map(|line| &line.points).map(|(_, sample)| sample)
    }

    /// What was measured on what: all that the lines share, when, and how often.
    pub(crate) fn subtitle(&self, axis: Setting) -> String {
        let mut parts = Vec::new();
        for setting in Setting::all() {
            if [axis, Setting::Revision, Setting::Side].contains(&setting) {
                continue;
            }
            let mut values = distinct(self.samples().map(|it| &*it.value(setting).words));
            let is_key = self.key.contains(&setting);
            if setting.always_has_words() && !is_key {
                // Without words there is no such setting, and nothing that differs.
                values.remove("");
            }
            parts.extend(match values.into_iter().collect::<Vec<_>>()[..] {
                [] | [""] => None,
                [one] => Some(one.to_owned()),
                _ if is_key => None,
                [one, other] => Some(format!("{one} or {other}")),
                _ => Some(format!("{} varies", setting.name())),
            });
        }
        let days: BTreeSet<String> = self
            .samples()
            .flat_map(Sample::files)
            .map(|loaded| loaded.result.started_at.chars().take(10).collect())
            .collect();
        parts.extend(match (days.first(), days.last()) {
            (Some(first), Some(last)) if first != last => Some(format!("{first} to {last}")),
            (first, _) => first.cloned(),
        });
        parts.push(self.runs());
        parts.join("\u{a0}· ")
    }

    fn runs(&self) -> String {
        // A case of several flows has several lines.
        let mut seen = BTreeSet::new();
        let cases: Vec<&CaseResult> = self
            .samples()
            .flat_map(Sample::cases)
            .filter(|case| seen.insert(std::ptr::from_ref(*case)))
            .collect();
        let runs = cases.iter().map(|case| case.runs.len());
        let runs = range(&runs.collect(), ["run", "runs"]);
        let launches: BTreeSet<usize> = self.samples().map(|it| it.cases().count()).collect();
        let mut text = match launches.last() {
            Some(2..) => format!("{} of {runs} a case", range(&launches, ["launch", "launches"])),
            _ => format!("{runs} a case"),
        };
        let reasons =
            LeftOut::of(cases.iter().flat_map(|case| &case.runs).map(standing::of_run)).reasons();
        if !reasons.is_empty() {
            text += &format!(", left out: {}", reasons.join(", "));
        }
        text
    }
}

fn range(counts: &BTreeSet<usize>, [one, many]: [&str; 2]) -> String {
    match (counts.first(), counts.last()) {
        (Some(1), Some(1)) => format!("1 {one}"),
        (Some(least), Some(most)) if least == most => format!("{most} {many}"),
        (Some(least), Some(most)) => format!("{least} to {most} {many}"),
        _ => String::new(),
    }
}

impl Group<'_> {
    /// All places of the axis on which a case of the chart lies.
    pub(crate) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> =
            self.lines.iter().flat_map(|line| &line.points).map(|(place, _)| *place).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }
}
