//! Charts of lines: differences name the lines and head the charts, and what all share stands once. Cases become lines,
//! and lines charts of at most so many: files of one revision with the same cases are launches of them.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use results::{load::Loaded, model::CaseResult};

use crate::observe::{
    Observation,
    format::{counted, each_once},
    standing::{self, LeftOut},
};
use crate::show::plot::{
    draw::{SeriesStyle, style},
    figure::Picture,
    rows::{Sample, Setting, Sides, minute},
};

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

/// Something of a run of a flow, with the names of both.
pub(crate) struct OfRun<R> {
    pub(crate) flow: String,
    pub(crate) run: String,
    pub(crate) value: R,
}

#[derive(Debug)]
pub(crate) struct Groups<'a> {
    pub(crate) groups: Vec<Group<'a>>,
    /// The setting along the axis.
    axis: Setting,
    /// What is not drawn and why, for a reader.
    pub(crate) notes: Vec<String>,
    pub(crate) key: Vec<Setting>,
    /// Those of them that differ within a chart, which name the lines.
    pub(crate) inside: Vec<Setting>,
    /// Names of all lines, in the order of their settings.
    pub(crate) names: Vec<String>,
    /// The same without their sides: those of one name have one colour.
    pub(crate) styles: Vec<String>,
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

fn name_by(line: &Line<'_>, settings: &[Setting]) -> String {
    let own = settings.iter().map(|it| plain(*it, line.value(*it)));
    let of_case = ["op", "cq"].map(|flag| line.value(Setting::from_flag(flag)).to_owned());
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
fn without_side(settings: &[Setting]) -> Vec<Setting> {
    settings.iter().copied().filter(|it| *it != Setting::Side).collect()
}

impl<'a> Groups<'a> {
    /// Each flow on a line of its own in one chart.
    pub(crate) fn of_flows(samples: Vec<Sample<'a>>) -> Groups<'a> {
        let rule = Rule {
            // All are at one place, and launches may differ in this.
            axis: Setting::from_flag("runs"),
            place: &|_| Some(0.0),
            apart: &[],
            most_lines: usize::MAX,
            most_charts: 1,
            least_places: 1,
        };
        Groups::new(samples, &rule)
    }

    /// What `value` makes of each run that counts, by flow, and the flows that have such runs.
    pub(crate) fn of_runs<R>(
        sides: Sides<'a>,
        value: impl Fn(&Sample<'a>, &Observation<'a>) -> Option<R>,
    ) -> (Groups<'a>, Vec<Vec<OfRun<R>>>) {
        let mut samples = Sample::of_sides(sides.new.into());
        samples.retain(|sample| sample.counted().any(|run| value(sample, run).is_some()));
        let groups = Groups::of_flows(samples);
        let flows = groups.flows().into_iter().map(|(flow, sample)| {
            let runs = sample.counted().filter_map(|counted| {
                let value = value(sample, counted)?;
                Some(OfRun { flow: flow.clone(), run: sample.run_name(counted.run), value })
            });
            runs.collect()
        });
        let runs = flows.collect();
        (groups, runs)
    }

    /// The flows of [`Groups::of_flows`], named by their cases, and those of one case by what they differ in.
    pub(crate) fn flows(&self) -> Vec<(String, &Sample<'a>)> {
        let mut alike: BTreeMap<String, Vec<&Line<'a>>> = BTreeMap::new();
        for line in self.lines() {
            let subjects = line.points.iter().map(|(_, sample)| sample.observed.flow.subject());
            subjects.for_each(|subject| alike.entry(subject).or_default().push(line));
        }
        let mut flows = Vec::new();
        for (subject, lines) in alike {
            let apart = self.key.iter().filter(|it| differs(lines.iter().copied(), **it));
            for line in &lines {
                let own = apart.clone().map(|it| plain(*it, line.value(*it)));
                let name = joined(std::iter::once(subject.clone()).chain(own));
                flows.extend(line.points.iter().map(|(_, sample)| (name.clone(), sample)));
            }
        }
        flows
    }

    pub(crate) fn name(&self, line: &Line<'_>) -> String {
        name_by(line, &self.inside)
    }

    /// The style of a line, the same in all charts; the base's is like that of its new counterpart.
    pub(crate) fn style(&self, line: &Line<'_>) -> SeriesStyle {
        let common = name_by(line, &without_side(&self.inside));
        let index = self.styles.iter().position(|name| *name == common);
        let own = style(index.unwrap_or_default());
        if line.is_of_base() { own.of_base() } else { own }
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line<'a>> {
        self.groups.iter().flat_map(|group| &group.lines)
    }

    /// All lines with their chart, named by its heading and by what is their own.
    pub(crate) fn named_lines(&self) -> impl Iterator<Item = (&Group<'a>, String, &Line<'a>)> {
        let lines =
            self.groups.iter().flat_map(|group| group.lines.iter().map(move |it| (group, it)));
        lines.map(|(group, line)| match (&*group.heading, self.name(line)) {
            ("", name) => (group, name, line),
            (heading, name) => (group, format!("{heading}: {name}"), line),
        })
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample<'a>> {
        self.lines().flat_map(|line| &line.points).map(|(_, sample)| sample)
    }

    /// A picture that says what the lines are of, and, after its own notes, what of them is not drawn.
    pub(crate) fn picture(&self, own: impl IntoIterator<Item = Option<String>>) -> Picture {
        let notes = own.into_iter().flatten().chain(self.notes.iter().cloned());
        Picture { subtitle: self.subtitle(), notes: notes.collect(), ..Picture::default() }
    }

    /// What was measured on what: all that the lines share, when, and how often.
    fn subtitle(&self) -> String {
        let mut parts = Vec::new();
        for setting in Setting::each() {
            if [self.axis, Setting::Revision, Setting::Side].contains(&setting) {
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
                [one, other] if !plain(setting, one).is_empty() => {
                    Some(format!("{} or {other}", plain(setting, one)))
                }
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
            LeftOut::new(cases.iter().flat_map(|case| &case.runs).map(standing::of_run)).reasons();
        if !reasons.is_empty() {
            text += &format!(", left out: {}", reasons.join(", "));
        }
        text
    }
}

/// `1 run`, `3 runs`, `2 to 3 runs`.
pub(crate) fn range(counts: &BTreeSet<usize>, [one, many]: [&str; 2]) -> String {
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

pub(crate) struct Rule<'r> {
    /// The setting along the axis, whose number a case has there.
    pub(crate) axis: Setting,
    pub(crate) place: &'r dyn Fn(&Sample<'_>) -> Option<f64>,
    /// Settings that never share a chart.
    pub(crate) apart: &'r [Setting],
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

/// `1 case is`, `2 cases are`.
fn are(count: usize, word: &str) -> String {
    format!("{} {}", counted(count, word), if count == 1 { "is" } else { "are" })
}

impl<'a> Groups<'a> {
    /// Groups what `rule` finds a place for.
    pub(crate) fn new(samples: Vec<Sample<'a>>, rule: &Rule<'_>) -> Groups<'a> {
        let mut placed: Vec<Placed<'a>> = samples
            .into_iter()
            .filter_map(|sample| Some(((rule.place)(&sample)?, sample)))
            .collect();
        let mut notes = Vec::new();
        let mut key = key_of(&placed, rule.axis);
        if key.contains(&Setting::Revision) {
            let older = keep_newest(&mut placed, &key);
            if older > 0 {
                notes.push(format!(
                    "Each case has its newest {MOST_REVISIONS} revisions. {} in the trend.",
                    are(older, "older one")
                ));
            }
            key = key_of(&placed, rule.axis);
        }
        let (mut lines, hidden) = lines_of(placed, &mut key, rule);
        if hidden > 0 {
            notes.push(format!("{} hidden.", are(hidden, "repeated case")));
        }
        let count = lines.len();
        lines.retain(|line| line.points.len() >= rule.least_places);
        let alone = count - lines.len();
        if rule.axis == Setting::Files && alone > 0 {
            let cases = are(alone, "case");
            notes.push(format!("{cases} not drawn: only one file has these settings."));
        }
        let mut charts = vec![lines];
        for setting in rule.apart {
            charts = charts.into_iter().flat_map(|chart| parted_by(chart, *setting)).collect();
        }
        charts = charts
            .into_iter()
            .flat_map(|chart| split(chart, &key, rule.most_lines))
            .filter(|chart| !chart.is_empty())
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
            .partition(|setting| charts.iter().any(|chart| differs(chart, *setting)));
        let mut drawn: Vec<&Line<'a>> = charts.iter().flatten().collect();
        let telling: Vec<Setting> = shared
            .iter()
            .filter(|setting| differs(drawn.iter().copied(), **setting))
            .copied()
            .collect();
        drawn.sort_by(|a, b| by_settings(a, b, &key));
        let names = each_once(drawn.iter().map(|line| name_by(line, &inside)));
        let others = without_side(&inside);
        let styles = each_once(drawn.iter().map(|line| name_by(line, &others)));
        Groups {
            groups: charts
                .into_iter()
                .map(|chart| Group {
                    heading: joined(telling.iter().map(|it| plain(*it, chart[0].value(*it)))),
                    lines: chart,
                })
                .collect(),
            axis: rule.axis,
            notes,
            key,
            inside,
            names,
            styles,
        }
    }
}

/// The settings that make a line: all that differ, without those in which launches may differ, and those that follow from
/// the others.
fn key_of(placed: &[Placed<'_>], axis: Setting) -> Vec<Setting> {
    let mut key = Setting::each();
    key.retain(|setting| {
        *setting != axis
            && !setting.may_differ()
            && distinct(placed.iter().map(|(_, sample)| &*sample.value(*setting).words)).len() > 1
    });
    if axis == Setting::Files {
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
    for point in new {
        let revision = revision_of(&point.1);
        let of_case = revisions.entry(case_of(point, &key)).or_default();
        of_case.insert((Reverse(begun.get(&revision).copied()), revision));
    }
    let mut gone = BTreeSet::new();
    placed.retain(|point| {
        let own = revision_of(&point.1);
        let mut newest =
            revisions.get(&case_of(point, &key)).into_iter().flatten().take(MOST_REVISIONS);
        let is_kept = point.1.is_base || newest.any(|(_, revision)| *revision == own);
        gone.extend((!is_kept).then_some(own));
        is_kept
    });
    gone.len()
}

/// The lines, and how many cases are at the place of another one that they are no launch of. A line is of one set of files: files
/// with the same cases are launches of them, and others have lines of their own.
fn lines_of<'a>(
    placed: Vec<Placed<'a>>,
    key: &mut Vec<Setting>,
    rule: &Rule<'_>,
) -> (Vec<Line<'a>>, usize) {
    let mut alike: BTreeMap<Vec<String>, Vec<Placed<'a>>> = BTreeMap::new();
    for point in placed {
        let of_line = alike.entry(words(&point.1, key)).or_default();
        of_line.push(point);
    }
    let mut hidden = 0;
    let mut lines = Vec::new();
    for of_line in alike.into_values() {
        let mut file_sets = match rule.axis {
            Setting::Files => vec![of_line],
            _ => file_sets(of_line, rule.least_places),
        };
        if file_sets.len() > 1 {
            name(&mut file_sets);
            key.push(Setting::Files);
        }
        lines.extend(file_sets.into_iter().map(|points| line(points, &mut hidden)));
    }
    key.dedup();
    lines.sort_by(|a, b| by_settings(a, b, key));
    (lines, hidden)
}

/// Parts cases by the files that have the same places, of which a line needs some.
fn file_sets<'a>(placed: Vec<Placed<'a>>, least: usize) -> Vec<Vec<Placed<'a>>> {
    let by_file = parted(placed, |one, other| std::ptr::eq(one.1.loaded, other.1.loaded));
    let mut file_sets: BTreeMap<BTreeSet<u64>, Vec<Placed<'a>>> = BTreeMap::new();
    for points in by_file {
        let places = points.iter().map(|(place, _)| place.to_bits()).collect();
        file_sets.entry(places).or_default().extend(points);
    }
    file_sets.retain(|places, _| places.len() >= least);
    file_sets.into_values().collect()
}

/// Names sets of files by their first files, and by their begin if that is not enough.
fn name(file_sets: &mut [Vec<Placed<'_>>]) {
    file_sets.sort_by_key(|points| first(points).map(|it| &it.result.started_at));
    let files: Vec<&Loaded> = file_sets.iter().filter_map(|it| first(it)).collect();
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
    for (order, (points, name)) in file_sets.iter_mut().zip(names).enumerate() {
        points
            .iter_mut()
            .map(|(_, sample)| sample)
            .for_each(|sample| sample.set_files(order, &name));
    }
}

/// The file of a set that was begun first.
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
    let [qps, rate] = ["qps", "rate"].map(Setting::from_flag);
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
