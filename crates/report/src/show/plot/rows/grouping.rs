//! Cases become lines, and lines charts of at most so many: files of one revision with the same cases are launches of them. It
//! must not know what is drawn of a case.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use super::groups::{Group, Groups, Line, distinct, name_by, without_side};
use super::sample::Sample;
use super::settings::{Setting, minute};
use crate::observe::format::plural;
use crate::results::load::Loaded;

/// How cases are put together.
pub(crate) struct Rule<'r> {
    /// The setting along the axis, whose number a case has there.
    pub(crate) axis: Setting,
    pub(crate) place: &'r dyn Fn(&Sample<'_>) -> Option<f64>,
    /// Settings that never share a chart.
    pub(crate) apart: &'r [&'static str],
    pub(crate) most_lines: usize,
    pub(crate) most_charts: usize,
    /// Places that a line has at least.
    pub(crate) least_places: usize,
}

/// Revisions of which the same cases are drawn together.
const MOST_REVISIONS: usize = 3;

type Placed<'a> = (f64, Sample<'a>);

fn values_of<'s>(samples: &'s [Placed<'_>], setting: Setting) -> BTreeSet<&'s str> {
    let samples = samples.iter();
    distinct(samples.map(|(_, sample)| sample.value(setting).words.as_str()))
}

/// Groups what `rule` finds a place for.
pub(crate) fn grouped<'a>(samples: Vec<Sample<'a>>, rule: &Rule<'_>) -> Groups<'a> {
    let placed = |sample: Sample<'a>| Some(((rule.place)(&sample)?, sample));
    let mut placed: Vec<Placed<'a>> = samples.into_iter().filter_map(placed).collect();
    let mut notes = Vec::new();
    let mut key = key_of(&placed, rule.axis);
    if key.contains(&Setting::Revision) {
        let older = keep_newest(&mut placed, &key);
        if older > 0 {
            notes.push(format!(
                "Each case has its newest {MOST_REVISIONS} revisions. {older} older {} in the trend.",
                if older == 1 { "one is" } else { "ones are" }
            ));
        }
        key = key_of(&placed, rule.axis);
    }
    let (mut lines, hidden) = lines_of(placed, &mut key, rule);
    if hidden > 0 {
        let cases = plural(hidden, "repeated case");
        let are = if hidden == 1 { "is" } else { "are" };
        notes.push(format!("{hidden} {cases} {are} hidden."));
    }
    if rule.axis == Setting::Sitting {
        let alone = lines
            .iter()
            .filter(|line| line.points.len() < rule.least_places);
        let alone = alone.count();
        if alone > 0 {
            let (cases, are) = (plural(alone, "case"), if alone == 1 { "is" } else { "are" });
            notes.push(format!(
                "{alone} {cases} {are} in one file only with these settings, and not drawn."
            ));
        }
    }
    lines.retain(|line| line.points.len() >= rule.least_places);
    let mut charts = Vec::new();
    let mut pending = vec![lines];
    for setting in rule.apart {
        let setting = Setting::of(setting);
        let parts = pending.into_iter();
        pending = parts.flat_map(|lines| parted(lines, setting)).collect();
    }
    for lines in pending {
        split(lines, &key, rule.most_lines, &mut charts);
    }
    charts.retain(|lines| !lines.is_empty());
    if charts.len() > rule.most_charts {
        notes.push(format!(
            "The figure has {} of {} charts, those with the most cases. The table of all cases has the others.",
            rule.most_charts,
            charts.len()
        ));
        keep_largest(&mut charts, rule.most_charts);
    }
    let differs_inside = |setting: &Setting| charts.iter().any(|lines| !is_one(lines, *setting));
    let inside: Vec<Setting> = key.iter().copied().filter(differs_inside).collect();
    let telling: Vec<Setting> = (key.iter().copied())
        .filter(|setting| {
            let lines = charts.iter().flatten();
            !inside.contains(setting) && distinct(lines.map(|it| it.value(*setting))).len() > 1
        })
        .collect();
    let common = without_side(&inside);
    let mut all: Vec<&Line<'a>> = charts.iter().flatten().collect();
    all.sort_by(|a, b| by_settings(a, b, &key));
    let distinct_by = |settings: &[Setting]| {
        let mut names: Vec<String> = Vec::new();
        for line in &all {
            let name = name_by(line, settings);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let (names, looks) = (distinct_by(&inside), distinct_by(&common));
    let headed = |lines: Vec<Line<'a>>| Group {
        apart: telling
            .iter()
            .map(|setting| super::groups::plain(*setting, lines[0].value(*setting)))
            .filter(|words| !words.is_empty())
            .collect(),
        lines,
    };
    Groups {
        groups: charts.into_iter().map(headed).collect(),
        notes,
        key,
        inside,
        names,
        looks,
    }
}

/// The settings that make a line: all that differ, without those in which launches may differ, and those that follow from
/// the others.
fn key_of(placed: &[Placed<'_>], axis: Setting) -> Vec<Setting> {
    let mut key: Vec<Setting> = Setting::all()
        .into_iter()
        .filter(|&setting| {
            setting != axis && !(axis == Setting::Sitting && setting == Setting::Revision)
        })
        .filter(|setting| !setting.may_differ())
        .filter(|&setting| values_of(placed, setting).len() > 1)
        .collect();
    if axis == Setting::Sitting {
        // A trend is of equal settings: none of them follows from the file.
        key.retain(|setting| *setting != Setting::Link);
        return key;
    }
    let places = |key: &[Setting]| {
        let of = |(place, sample): &Placed<'_>| {
            let values: Vec<&str> = key
                .iter()
                .map(|setting| sample.value(*setting).words.as_str())
                .collect();
            (place.to_bits(), values.join("\n"))
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

/// Leaves each case of the newest revisions that have it, and of the base; returns how many revisions lost one.
fn keep_newest(placed: &mut Vec<Placed<'_>>, key: &[Setting]) -> usize {
    let mut begun: BTreeMap<String, String> = BTreeMap::new();
    for (_, sample) in placed.iter().filter(|(_, sample)| !sample.is_base) {
        let revision = sample.value(Setting::Revision).words.clone();
        let at = &sample.loaded.result.started_at;
        let newest = begun.entry(revision).or_default();
        if *at > *newest {
            newest.clone_from(at);
        }
    }
    let mut by_age: Vec<(String, String)> = begun.into_iter().collect();
    by_age.sort_by(|a, b| b.1.cmp(&a.1));
    let age = |sample: &Sample<'_>| {
        let revision = &sample.value(Setting::Revision).words;
        by_age.iter().position(|(known, _)| known == revision)
    };
    let case = |(place, sample): &Placed<'_>| {
        let others = key
            .iter()
            .filter(|it| ![Setting::Revision, Setting::Side].contains(it));
        let values: Vec<String> = others.map(|it| sample.value(*it).words.clone()).collect();
        (place.to_bits(), values)
    };
    let mut ages: BTreeMap<(u64, Vec<String>), BTreeSet<usize>> = BTreeMap::new();
    for placed in placed.iter().filter(|(_, sample)| !sample.is_base) {
        ages.entry(case(placed)).or_default().extend(age(&placed.1));
    }
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    placed.retain(|placed| {
        let (false, Some(age), Some(all)) =
            (placed.1.is_base, age(&placed.1), ages.get(&case(placed)))
        else {
            return true;
        };
        let is_new = all.iter().take(MOST_REVISIONS).any(|new| *new == age);
        gone.extend((!is_new).then_some(age));
        is_new
    });
    gone.len()
}

/// The lines, and how many cases are at the place of another one that they are no launch of. A line is of one sitting: files
/// with the same cases are launches of them, and others have lines of their own.
fn lines_of<'a>(
    placed: Vec<Placed<'a>>,
    key: &mut Vec<Setting>,
    rule: &Rule<'_>,
) -> (Vec<Line<'a>>, usize) {
    let mut alike: BTreeMap<Vec<String>, Vec<Placed<'a>>> = BTreeMap::new();
    for (place, sample) in placed {
        let values = key
            .iter()
            .map(|setting| sample.value(*setting).words.clone());
        alike
            .entry(values.collect())
            .or_default()
            .push((place, sample));
    }
    let mut hidden = 0;
    let mut lines = Vec::new();
    for placed in alike.into_values() {
        let mut sittings = match rule.axis {
            Setting::Sitting => vec![placed],
            _ => sittings(placed, rule.least_places),
        };
        if sittings.len() > 1 {
            name(&mut sittings);
            key.push(Setting::Sitting);
        }
        lines.extend(sittings.into_iter().map(|points| line(points, &mut hidden)));
    }
    key.dedup();
    lines.sort_by(|a, b| by_settings(a, b, key));
    (lines, hidden)
}

fn places(placed: &[Placed<'_>]) -> BTreeSet<u64> {
    placed.iter().map(|(place, _)| place.to_bits()).collect()
}

/// Parts cases by the files that have the same places, of which a line needs some.
fn sittings<'a>(placed: Vec<Placed<'a>>, least: usize) -> Vec<Vec<Placed<'a>>> {
    let mut by_file: Vec<Vec<Placed<'a>>> = Vec::new();
    for one in placed {
        let is_same =
            |points: &&mut Vec<Placed<'a>>| std::ptr::eq(points[0].1.loaded, one.1.loaded);
        match by_file.iter_mut().find(is_same) {
            Some(points) => points.push(one),
            None => by_file.push(vec![one]),
        }
    }
    let mut sittings: BTreeMap<BTreeSet<u64>, Vec<Placed<'a>>> = BTreeMap::new();
    for points in by_file {
        sittings.entry(places(&points)).or_default().extend(points);
    }
    sittings.retain(|places, _| places.len() >= least);
    sittings.into_values().collect()
}

/// Names sittings by their first files, and when these were begun if that does not tell them apart.
fn name(sittings: &mut [Vec<Placed<'_>>]) {
    sittings.sort_by_key(|points| first(points).map(|it| &it.result.started_at));
    let names = |with_time: bool| -> Vec<String> {
        let files = sittings.iter().filter_map(first);
        let named = files.map(|loaded| {
            let name = loaded
                .path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy();
            match with_time {
                true => format!("{name} of {}", minute(&loaded.result.started_at)),
                false => name.into_owned(),
            }
        });
        named.collect()
    };
    let short = names(false);
    let is_distinct = distinct(short.iter().map(String::as_str)).len() == sittings.len();
    let names = if is_distinct { short } else { names(true) };
    for (order, (points, name)) in sittings.iter_mut().zip(names).enumerate() {
        points
            .iter_mut()
            .for_each(|(_, sample)| sample.set_sitting(order, &name));
    }
}

/// The file of a sitting that was begun first.
fn first<'a>(points: &Vec<Placed<'a>>) -> Option<&'a Loaded> {
    let files = points.iter().map(|(_, sample)| sample.loaded);
    files.min_by_key(|loaded| &loaded.result.started_at)
}

/// A line, in which launches of a case are one.
fn line<'a>(mut points: Vec<Placed<'a>>, hidden: &mut usize) -> Line<'a> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|later, first| {
        let is_same = later.0 == first.0;
        if is_same {
            *hidden += usize::from(!first.1.add_launch(&later.1));
        }
        is_same
    });
    Line { points }
}

/// Leaves the charts with the most cases, in their order; of equal ones, some from all over.
fn keep_largest(charts: &mut Vec<Vec<Line<'_>>>, most: usize) {
    let cases = |lines: &[Line<'_>]| lines.iter().map(|line| line.points.len()).sum::<usize>();
    let stride = charts.len().div_ceil(most.max(1));
    let mut order: Vec<usize> = (0..charts.len()).collect();
    order.sort_by_key(|&index| (Reverse(cases(&charts[index])), index % stride, index));
    let kept = &order[..most.min(order.len())];
    let mut index = 0..;
    charts.retain(|_| index.next().is_some_and(|index| kept.contains(&index)));
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

/// Lines with the same value of a setting, in the order in which values first come.
fn parted<'a>(lines: Vec<Line<'a>>, setting: Setting) -> Vec<Vec<Line<'a>>> {
    let mut parts: Vec<Vec<Line<'a>>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        let next = parts.len();
        let place = *places.entry(line.value(setting).to_owned()).or_insert(next);
        if place == next {
            parts.push(Vec::new());
        }
        parts[place].push(line);
    }
    parts
}

/// Parts lines by one setting after another until they are few enough, each time by the one that leaves the fewest
/// charts. Lines of several numbers of QPs, several loads and both sides stay in one chart as long as another setting
/// parts them.
fn split<'a>(lines: Vec<Line<'a>>, key: &[Setting], most: usize, into: &mut Vec<Vec<Line<'a>>>) {
    if lines.len() <= most {
        into.push(lines);
        return;
    }
    let together = [
        Setting::of("qps"),
        Setting::of("rate"),
        Setting::Revision,
        Setting::Side,
    ];
    let sizes = |setting: Setting| {
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &lines {
            *sizes.entry(line.value(setting)).or_default() += 1;
        }
        sizes
    };
    let best = key
        .iter()
        .map(|setting| (*setting, sizes(*setting)))
        .filter(|(_, sizes)| sizes.len() > 1)
        .min_by_key(|(setting, sizes)| {
            let largest = sizes.values().copied().max().unwrap_or(0);
            (
                together.contains(setting),
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

fn is_one(lines: &[Line<'_>], setting: Setting) -> bool {
    distinct(lines.iter().map(|line| line.value(setting))).len() == 1
}
