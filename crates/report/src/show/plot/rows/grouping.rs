//! Cases become lines, and lines charts of at most so many: files of one revision with the same cases are launches
//! of them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use super::groups::{Group, Groups, Line, distinct, joined, name_by, plain, without_side};
use super::sample::Sample;
use super::settings::{Setting, minute};
use crate::observe::format::{each_once, plural};
use crate::results::load::Loaded;

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

fn words(sample: &Sample<'_>, settings: &[Setting]) -> Vec<String> {
    settings.iter().map(|setting| sample.value(*setting)).map(|value| value.words.clone()).collect()
}

fn without(key: &[Setting], others: &[Setting]) -> Vec<Setting> {
    key.iter().copied().filter(|setting| !others.contains(setting)).collect()
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Groups what `rule` finds a place for.
pub(crate) fn grouped<'a>(samples: Vec<Sample<'a>>, rule: &Rule<'_>) -> Groups<'a> {
    let mut placed: Vec<Placed<'a>> =
        samples.into_iter().filter_map(|sample| Some(((rule.place)(&sample)?, sample))).collect();
    let mut notes = Vec::new();
    let mut key = key_of(&placed, rule.axis);
    if key.contains(&Setting::Revision) {
        let older = keep_newest(&mut placed, &key);
        if older > 0 {
            let (ones, are) = (plural(older, "one"), are(older));
            notes.push(format!(
                "Each case has its newest {MOST_REVISIONS} revisions. {older} older {ones} {are} in the trend."
            ));
        }
        key = key_of(&placed, rule.axis);
    }
    let (mut lines, hidden) = lines_of(placed, &mut key, rule);
    if hidden > 0 {
        let (cases, are) = (plural(hidden, "repeated case"), are(hidden));
        notes.push(format!("{hidden} {cases} {are} hidden."));
    }
    let count = lines.len();
    lines.retain(|line| line.points.len() >= rule.least_places);
    let alone = count - lines.len();
    if rule.axis == Setting::Sitting && alone > 0 {
        let (cases, are) = (plural(alone, "case"), are(alone));
        notes.push(format!("{alone} {cases} {are} not drawn: only one file has these settings."));
    }
    let mut charts = vec![lines];
    for setting in rule.apart {
        charts =
            charts.into_iter().flat_map(|lines| parted_by(lines, Setting::of(setting))).collect();
    }
    charts = charts
        .into_iter()
        .flat_map(|lines| split(lines, &key, rule.most_lines))
        .filter(|lines| !lines.is_empty())
        .collect();
    if charts.len() > rule.most_charts {
        notes.push(format!(
            "The figure has {} of {} charts, those with the most cases. The table of all cases has the others.",
            rule.most_charts,
            charts.len()
        ));
        keep_largest(&mut charts, rule.most_charts);
    }
    let (inside, shared): (Vec<Setting>, Vec<Setting>) = (key.iter().copied())
        .partition(|setting| charts.iter().any(|lines| differs(lines, *setting)));
    let mut drawn: Vec<&Line<'a>> = charts.iter().flatten().collect();
    let telling: Vec<Setting> = shared
        .iter()
        .filter(|setting| differs(drawn.iter().copied(), **setting))
        .copied()
        .collect();
    drawn.sort_by(|a, b| by_settings(a, b, &key));
    let names = each_once(drawn.iter().map(|line| name_by(line, &inside)));
    let others = without_side(&inside);
    let looks = each_once(drawn.iter().map(|line| name_by(line, &others)));
    Groups {
        groups: charts
            .into_iter()
            .map(|lines| Group {
                heading: joined(telling.iter().map(|it| plain(*it, lines[0].value(*it)))),
                lines,
            })
            .collect(),
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
    let mut key = Setting::all();
    key.retain(|setting| {
        *setting != axis
            && !setting.may_differ()
            && distinct(placed.iter().map(|(_, sample)| &*sample.value(*setting).words)).len() > 1
    });
    if axis == Setting::Sitting {
        // A trend is of equal settings: none of them follows from the file.
        return without(&key, &[Setting::Revision, Setting::Link]);
    }
    let count = places(placed, &key);
    for setting in key.clone().into_iter().rev() {
        let others = without(&key, &[setting]);
        if setting.may_follow() && places(placed, &others) == count {
            key = others;
        }
    }
    key
}

/// How many places and lines there are if these settings make a line.
fn places(placed: &[Placed<'_>], key: &[Setting]) -> usize {
    let places = placed.iter().map(|placed| case_of(placed, key));
    places.collect::<BTreeSet<_>>().len()
}

/// What distinguishes a case from the others.
fn case_of((place, sample): &Placed<'_>, key: &[Setting]) -> (u64, Vec<String>) {
    (place.to_bits(), words(sample, key))
}

fn revision_of(sample: &Sample<'_>) -> String {
    sample.value(Setting::Revision).words.clone()
}

/// Leaves each case of the newest revisions that have it, and of the base; returns how many revisions lost one.
fn keep_newest(placed: &mut Vec<Placed<'_>>, key: &[Setting]) -> usize {
    let new = placed.iter().filter(|(_, sample)| !sample.is_base);
    let mut begun: BTreeMap<String, &str> = BTreeMap::new();
    for (_, sample) in new.clone() {
        let newest = begun.entry(revision_of(sample)).or_default();
        *newest = (*newest).max(sample.loaded.result.started_at.as_str());
    }
    let key = without(key, &[Setting::Revision, Setting::Side]);
    let mut revisions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for placed in new {
        let revision = revision_of(&placed.1);
        let of_case = revisions.entry(case_of(placed, &key)).or_default();
        of_case.insert((Reverse(begun.get(&revision).copied()), revision));
    }
    let mut gone = BTreeSet::new();
    placed.retain(|placed| {
        let own = revision_of(&placed.1);
        let mut newest =
            revisions.get(&case_of(placed, &key)).into_iter().flatten().take(MOST_REVISIONS);
        let is_kept = placed.1.is_base || newest.any(|(_, revision)| *revision == own);
        gone.extend((!is_kept).then_some(own));
        is_kept
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
    for placed in placed {
        let of_line = alike.entry(words(&placed.1, key)).or_default();
        of_line.push(placed);
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

/// Parts cases by the files that have the same places, of which a line needs some.
fn sittings<'a>(placed: Vec<Placed<'a>>, least: usize) -> Vec<Vec<Placed<'a>>> {
    let by_file = parted(placed, |one, other| std::ptr::eq(one.1.loaded, other.1.loaded));
    let mut sittings: BTreeMap<BTreeSet<u64>, Vec<Placed<'a>>> = BTreeMap::new();
    for points in by_file {
        let places = points.iter().map(|(place, _)| place.to_bits()).collect();
        sittings.entry(places).or_default().extend(points);
    }
    sittings.retain(|places, _| places.len() >= least);
    sittings.into_values().collect()
}

/// Names sittings by their first files, and by their begin if that is not enough.
fn name(sittings: &mut [Vec<Placed<'_>>]) {
    sittings.sort_by_key(|points| first(points).map(|it| &it.result.started_at));
    let files: Vec<&Loaded> = sittings.iter().filter_map(|it| first(it)).collect();
    let short: Vec<String> = files
        .iter()
        .map(|loaded| loaded.path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let names = if distinct(short.iter().map(String::as_str)).len() == files.len() {
        short
    } else {
        short
            .iter()
            .zip(&files)
            .map(|(name, loaded)| format!("{name} of {}", minute(&loaded.result.started_at)))
            .collect()
    };
    for (order, (points, name)) in sittings.iter_mut().zip(names).enumerate() {
        points
            .iter_mut()
            .map(|(_, sample)| sample)
            .for_each(|sample| sample.set_sitting(order, &name));
    }
}

/// The file of a sitting that was begun first.
fn first<'a>(points: &[Placed<'a>]) -> Option<&'a Loaded> {
    points.iter().map(|(_, sample)| sample.loaded).min_by_key(|loaded| &loaded.result.started_at)
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
    let stride = charts.len().div_ceil(most.max(1));
    let mut order: Vec<usize> = (0..charts.len()).collect();
    order.sort_by_key(|&index| {
        let cases: usize = charts[index].iter().map(|line| line.points.len()).sum();
        (Reverse(cases), index % stride, index)
    });
    let kept = &order[..most.min(order.len())];
    let mut index = 0..;
    charts.retain(|_| index.next().is_some_and(|index| kept.contains(&index)));
}

fn by_settings(a: &Line<'_>, b: &Line<'_>, key: &[Setting]) -> Ordering {
    let (Some((_, a)), Some((_, b))) = (a.points.first(), b.points.first()) else {
        return Ordering::Equal;
    };
    key.iter().map(|it| a.value(*it).compare(b.value(*it))).fold(Ordering::Equal, Ordering::then)
}

/// Parts of what is alike, in the order in which they first come.
fn parted<T>(ones: Vec<T>, is_alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = Vec::new();
    for one in ones {
        match parts.iter_mut().find(|part| is_alike(&part[0], &one)) {
            Some(part) => part.push(one),
            None => parts.push(vec![one]),
        }
    }
    parts
}

fn parted_by<'a>(lines: Vec<Line<'a>>, setting: Setting) -> Vec<Vec<Line<'a>>> {
    parted(lines, |one, other| one.value(setting) == other.value(setting))
}

/// Parts lines by one setting after another until they are few enough, each time by the one that leaves the fewest
/// charts. Lines of several numbers of QPs, several loads and both sides stay in one chart as long as another setting
/// parts them.
fn split<'a>(lines: Vec<Line<'a>>, key: &[Setting], most: usize) -> Vec<Vec<Line<'a>>> {
    if lines.len() <= most {
        return vec![lines];
    }
    let [qps, rate] = ["qps", "rate"].map(Setting::of);
    let together = [qps, rate, Setting::Revision, Setting::Side];
    let parting = key.iter().copied().filter(|it| differs(&lines, *it)).min_by_key(|setting| {
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &lines {
            *sizes.entry(line.value(*setting)).or_default() += 1;
        }
        let largest = sizes.values().copied().max().unwrap_or(0);
        let is_large = largest > most;
        let charts = if is_large { largest } else { sizes.len() };
        (together.contains(setting), is_large, charts)
    });
    match parting {
        Some(setting) => {
            parted_by(lines, setting).into_iter().flat_map(|part| split(part, key, most)).collect()
        }
        None => lines.chunks(most).map(<[Line<'a>]>::to_vec).collect(),
    }
}

fn differs<'l, 'a: 'l>(lines: impl IntoIterator<Item = &'l Line<'a>>, setting: Setting) -> bool {
    distinct(lines.into_iter().map(|line| line.value(setting))).len() > 1
}
