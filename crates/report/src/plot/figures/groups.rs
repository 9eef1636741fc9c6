//! Cases become lines, and lines figures of at most so many: what differs names the lines, what does not is
//! said once. It must not know what is drawn of a case.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::settings::{Sample, Setting, minute};
use crate::plot::figure::Figure;
use crate::plot::median::{complete_runs, kept_schedule};

/// Cases that differ in the figure's horizontal axis only.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// Place on the axis and case, by place.
    pub(super) points: Vec<(f64, Sample<'a>)>,
}

/// Lines of one figure.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) lines: Vec<Line<'a>>,
    /// What tells this figure from others of its kind.
    pub(super) apart: Vec<String>,
    key: Vec<Setting>,
}

/// Everything of one kind of figure.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// What is not drawn and why, for a reader.
    pub(super) notes: Vec<String>,
}

impl<'a> Groups<'a> {
    /// A figure for each group for which `draw` makes one; the last is given the notes.
    pub(super) fn figures(
        &self,
        draw: impl Fn(usize, &Group<'a>, &[String]) -> Option<Figure>,
    ) -> Vec<Figure> {
        let last = self.groups.len().saturating_sub(1);
        let drawn = self.groups.iter().enumerate().filter_map(|(index, group)| {
            let notes: &[String] = if index == last { &self.notes } else { &[] };
            draw(index, group, notes)
        });
        drawn.collect()
    }
}

/// How cases are put together.
pub(super) struct Rule<'r> {
    /// The setting along the axis, whose number a case has there.
    pub(super) axis: Setting,
    pub(super) place: &'r dyn Fn(&Sample<'_>) -> Option<f64>,
    /// Settings that never share a figure.
    pub(super) apart: &'r [Setting],
    pub(super) most_lines: usize,
    pub(super) most_figures: usize,
    /// Places that a line has at least.
    pub(super) least_places: usize,
}

/// Sittings of the same cases that are drawn together.
const MOST_SITTINGS: usize = 3;

fn distinct<'a>(samples: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    samples.collect()
}

fn values_of<'s>(samples: &'s [(f64, Sample<'_>)], setting: Setting) -> BTreeSet<&'s str> {
    distinct(
        samples
            .iter()
            .map(|(_, sample)| sample.value(setting).words.as_str()),
    )
}

/// Groups what `rule` finds a place for.
pub(super) fn grouped<'a>(samples: Vec<Sample<'a>>, rule: &Rule<'_>) -> Groups<'a> {
    let placed = |sample: Sample<'a>| Some(((rule.place)(&sample)?, sample));
    let mut placed: Vec<_> = samples.into_iter().filter_map(placed).collect();
    let mut notes = Vec::new();
    let mut key = key_of(&placed, rule.axis);
    if key.contains(&Setting::Sitting) {
        let older = keep_newest(&mut placed);
        if older > 0 {
            notes.push(format!(
                "The newest {MOST_SITTINGS} files are drawn; {older} older ones with the same cases are in the trend."
            ));
        }
        key = key_of(&placed, rule.axis);
    }
    let lines = lines_of(placed, &key, rule.least_places);
    let mut groups = Vec::new();
    let mut pending = vec![lines];
    for setting in rule.apart {
        pending = pending
            .into_iter()
            .flat_map(|lines| parted(lines, *setting))
            .collect();
    }
    for lines in pending {
        split(lines, &key, rule.most_lines, &mut groups);
    }
    groups.retain(|lines| !lines.is_empty());
    let telling = telling(&groups, &key);
    let left_out: usize = groups.iter().skip(rule.most_figures).map(Vec::len).sum();
    if left_out > 0 {
        notes.push(format!(
            "{left_out} more lines are not drawn, so that the page stays one that a browser opens: give fewer files, or \
             files of fewer cases, to see them. The table of all cases has them."
        ));
        groups.truncate(rule.most_figures);
    }
    let named = |lines: Vec<Line<'a>>| Group {
        apart: telling
            .iter()
            .filter(|setting| is_one(&lines, **setting))
            .filter_map(|setting| words(first_of(&lines)?, *setting))
            .collect(),
        key: key.clone(),
        lines,
    };
    Groups {
        groups: groups.into_iter().map(named).collect(),
        notes,
    }
}

fn first_of<'l, 'a>(lines: &'l [Line<'a>]) -> Option<&'l Sample<'a>> {
    lines.first()?.points.first().map(|(_, sample)| sample)
}

fn words(sample: &Sample<'_>, setting: Setting) -> Option<String> {
    let words = &sample.value(setting).words;
    (!words.is_empty()).then(|| words.clone())
}

/// The settings that make a line: all that differ, without those that follow from the others.
fn key_of(placed: &[(f64, Sample<'_>)], axis: Setting) -> Vec<Setting> {
    let mut key: Vec<Setting> = Setting::all()
        .into_iter()
        .filter(|&setting| setting != axis && values_of(placed, setting).len() > 1)
        .collect();
    let places = |key: &[Setting]| {
        let of = |(place, sample): &(f64, Sample<'_>)| {
            let values: Vec<String> = key
                .iter()
                .map(|setting| sample.value(*setting).words.clone())
                .collect();
            (place.to_bits(), values)
        };
        placed.iter().map(of).collect::<BTreeSet<_>>().len()
    };
    let candidates: Vec<Setting> = key
        .iter()
        .copied()
        .filter(|setting| setting.may_follow())
        .collect();
    let mut all = places(&key);
    for setting in candidates.into_iter().rev() {
        let without: Vec<Setting> = key
            .iter()
            .copied()
            .filter(|other| *other != setting)
            .collect();
        let left = places(&without);
        if left == all {
            key = without;
            all = left;
        }
    }
    key
}

/// Leaves the cases of the newest files; returns how many files went.
fn keep_newest(placed: &mut Vec<(f64, Sample<'_>)>) -> usize {
    let files: BTreeSet<(String, std::path::PathBuf)> = placed
        .iter()
        .map(|(_, sample)| {
            (
                sample.loaded.result.started_at.clone(),
                sample.loaded.path.clone(),
            )
        })
        .collect();
    let Some(oldest) = files.iter().rev().nth(MOST_SITTINGS - 1).cloned() else {
        return 0;
    };
    placed.retain(|(_, sample)| {
        (&sample.loaded.result.started_at, &sample.loaded.path) >= (&oldest.0, &oldest.1)
    });
    files.len() - MOST_SITTINGS
}

fn lines_of<'a>(placed: Vec<(f64, Sample<'a>)>, key: &[Setting], least: usize) -> Vec<Line<'a>> {
    let mut lines: BTreeMap<Vec<String>, Vec<(f64, Sample<'a>)>> = BTreeMap::new();
    for (place, sample) in placed {
        let values = key
            .iter()
            .map(|setting| sample.value(*setting).words.clone())
            .collect();
        lines.entry(values).or_default().push((place, sample));
    }
    let of = |mut points: Vec<(f64, Sample<'a>)>| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|later, first| later.0 == first.0);
        Line { points }
    };
    let mut lines: Vec<Line<'a>> = lines.into_values().map(of).collect();
    lines.retain(|line| line.points.len() >= least);
    lines.sort_by(|a, b| by_settings(a, b, key));
    lines
}

fn by_settings(a: &Line<'_>, b: &Line<'_>, key: &[Setting]) -> Ordering {
    let (Some((_, a)), Some((_, b))) = (a.points.first(), b.points.first()) else {
        return Ordering::Equal;
    };
    key.iter()
        .map(|setting| a.value(*setting).compare(b.value(*setting)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn value_of<'l>(line: &'l Line<'_>, setting: Setting) -> &'l str {
    let first = line.points.first();
    first.map_or("", |(_, sample)| sample.value(setting).words.as_str())
}

/// Lines with the same value of a setting, in the order in which values first come.
fn parted<'a>(lines: Vec<Line<'a>>, setting: Setting) -> Vec<Vec<Line<'a>>> {
    let mut parts: Vec<Vec<Line<'a>>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        let next = parts.len();
        let place = *places
            .entry(value_of(&line, setting).to_owned())
            .or_insert(next);
        if place == next {
            parts.push(Vec::new());
        }
        parts[place].push(line);
    }
    parts
}

/// Parts lines by one setting after another until they are few enough, each time by the one that leaves the
/// fewest figures.
fn split<'a>(lines: Vec<Line<'a>>, key: &[Setting], most: usize, into: &mut Vec<Vec<Line<'a>>>) {
    if lines.len() <= most {
        into.push(lines);
        return;
    }
    let sizes = |setting: Setting| {
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &lines {
            *sizes.entry(value_of(line, setting)).or_default() += 1;
        }
        sizes
    };
    let best = key
        .iter()
        .map(|setting| (*setting, sizes(*setting)))
        .filter(|(_, sizes)| sizes.len() > 1)
        .min_by_key(|(_, sizes)| {
            let largest = sizes.values().copied().max().unwrap_or(0);
            (
                largest > most,
                if largest > most { largest } else { sizes.len() },
            )
        })
        .map(|(setting, _)| setting);
    match best {
        Some(setting) => {
            for part in parted(lines, setting) {
                split(part, key, most, into);
            }
        }
        None => into.extend(lines.chunks(most).map(<[Line<'a>]>::to_vec)),
    }
}

/// The settings that differ between figures.
fn telling(groups: &[Vec<Line<'_>>], key: &[Setting]) -> Vec<Setting> {
    let differs = |setting: Setting| {
        let lines = groups.iter().flatten();
        distinct(lines.map(|line| value_of(line, setting))).len() > 1
    };
    key.iter()
        .copied()
        .filter(|&setting| differs(setting))
        .collect()
}

fn is_one(lines: &[Line<'_>], setting: Setting) -> bool {
    distinct(lines.iter().map(|line| value_of(line, setting))).len() == 1
}

impl Group<'_> {
    /// Name of a line: what it does not share with the others.
    pub(super) fn name(&self, line: &Line<'_>) -> String {
        let differing = self.key.iter().copied().filter(|&setting| {
            distinct(self.lines.iter().map(|line| value_of(line, setting))).len() > 1
        });
        let plain = |setting: Setting| match (setting, value_of(line, setting)) {
            (setting, "") => setting.usual(),
            (_, words) => words.to_owned(),
        };
        let words: Vec<String> = differing
            .map(plain)
            .filter(|words| !words.is_empty())
            .collect();
        if words.is_empty() {
            let of_case = [
                value_of(line, Setting::of("op")),
                value_of(line, Setting::of("cq")),
            ];
            of_case.join(", ")
        } else {
            words.join(", ")
        }
    }

    /// All places of the axis on which a case of the figure lies.
    pub(super) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self
            .lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(place, _)| *place))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// What was measured on what: all that the lines share, when, and how often.
    pub(super) fn subtitle(&self, axis: Setting) -> String {
        let samples = || {
            self.lines
                .iter()
                .flat_map(|line| line.points.iter().map(|(_, sample)| sample))
        };
        let mut parts = Vec::new();
        for setting in Setting::all() {
            if setting == axis || setting == Setting::Sitting {
                continue;
            }
            let mut values = distinct(samples().map(|sample| sample.value(setting).words.as_str()));
            if setting.always_has_words() && !self.key.contains(&setting) {
                // Without words there is no such setting, and nothing that differs.
                values.remove("");
            }
            match (values.len(), values.first()) {
                (0, _) | (1, Some(&"")) => {}
                (1, Some(&one)) => parts.push(one.to_owned()),
                _ if !self.key.contains(&setting) => {
                    parts.push(format!("{} differs along a line", setting.name()));
                }
                _ => {}
            }
        }
        let started = || samples().map(|sample| minute(&sample.loaded.result.started_at));
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
        let cases = || {
            self.lines
                .iter()
                .flat_map(|line| line.points.iter().map(|(_, sample)| sample.flow.case))
        };
        // A case of several flows has several lines.
        let cases = || {
            let mut seen = BTreeSet::new();
            cases().filter(move |case| seen.insert(std::ptr::from_ref(*case)))
        };
        let counts: BTreeSet<usize> = cases().map(|case| case.runs.len()).collect();
        let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
            return String::new();
        };
        let mut text = match (least, most) {
            (1, 1) => "1 run a case".to_owned(),
            (least, most) if least == most => format!("{most} runs a case"),
            (least, most) => format!("{least} to {most} runs a case"),
        };
        let incomplete = cases()
            .flat_map(|case| &case.runs)
            .filter(|run| !run.complete)
            .count();
        if incomplete > 0 {
            text.push_str(&format!(", {incomplete} not complete and left out"));
        }
        let late = cases()
            .flat_map(complete_runs)
            .filter(|run| !kept_schedule(run))
            .count();
        if late > 0 {
            text.push_str(&format!(", {late} did not keep the schedule"));
        }
        text
    }

    /// A title with what tells the figure from others of its kind.
    pub(super) fn title(&self, what: &str) -> String {
        if self.apart.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {}", self.apart.join(", "))
        }
    }
}
