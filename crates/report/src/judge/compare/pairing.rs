//! Which cases of the two sides belong together: those that were configured alike, wherever they stand.

use std::collections::{BTreeMap, HashMap};

use crate::results::load::Loaded;
use crate::results::model::{CaseConfig, CaseResult, FlowConfig};
use settings::{ROWS, Row, Settings};

/// A case as one side has it: once a file.
#[derive(Clone, Debug)]
pub(super) struct SideCase<'a> {
    /// The files that have it, by number within the side, and what each has.
    pub(super) files: Vec<(usize, &'a CaseResult)>,
}

impl<'a> SideCase<'a> {
    pub(super) fn first(&self) -> Option<&'a CaseResult> {
        self.files.first().map(|(_, case)| *case)
    }
}

/// The cases of both sides.
#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    /// On both sides, in the order of the base; same name, and same settings unless nothing closer was there.
    pub(super) both: Vec<(SideCase<'a>, SideCase<'a>)>,
    pub(super) only_in_base: Vec<String>,
    pub(super) only_in_new: Vec<String>,
}

/// What was asked for: the settings without what followed from device and path, and without those in which results
/// may differ.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    settings: Settings,
    /// By name.
    flows: BTreeMap<String, AskedFlow>,
}

#[derive(Clone, Debug, PartialEq)]
struct AskedFlow {
    from: String,
    to: String,
    settings: Settings,
}

fn asked(config: &CaseConfig) -> Asked {
    let usual = Settings::default();
    let without_free = |mut settings: Settings| {
        for row in ROWS.iter().filter(|row| row.may_differ) {
            row.copy(&mut settings, &usual);
        }
        settings
    };
    let flow = |(index, flow): (usize, &FlowConfig)| {
        let asked = AskedFlow {
            from: flow.from.clone(),
            to: flow.to.clone(),
            settings: without_free(config.flow(index)),
        };
        (flow.name.clone(), asked)
    };
    Asked {
        settings: without_free(config.settings.clone()),
        flows: config.flows.iter().enumerate().map(flow).collect(),
    }
}

/// A side's cases, each once, in order of appearance, with what was asked for.
fn cases<'a>(side: &[&'a Loaded]) -> Vec<(Asked, SideCase<'a>)> {
    let mut cases: Vec<(Asked, SideCase)> = Vec::new();
    let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (file, loaded) in side.iter().copied().enumerate() {
        for case in &loaded.result.cases {
            let config = asked(&case.config);
            let known = by_id.entry(&case.id).or_default();
            match known.iter().find(|number| cases[**number].0 == config) {
                Some(number) => cases[*number].1.files.push((file, case)),
                None => {
                    known.push(cases.len());
                    let files = vec![(file, case)];
                    cases.push((config, SideCase { files }));
                }
            }
        }
    }
    cases
}

/// Pairs the cases of two sides.
pub(super) fn pair<'a>(base: &[&'a Loaded], new: &[&'a Loaded]) -> Pairs<'a> {
    let mut left: Vec<Option<(Asked, SideCase)>> = cases(new).into_iter().map(Some).collect();
    let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, (_, case)) in left.iter().flatten().enumerate() {
        let id = case.first().map(|case| case.id.clone());
        by_id
            .entry(id.unwrap_or_default())
            .or_default()
            .push(number);
    }
    let mut pairs = Pairs::default();
    // Exact matches go first, so that a near one does not take what another case matches exactly.
    let base = cases(base);
    let mut partners: Vec<Option<SideCase>> = vec![None; base.len()];
    for exactly in [true, false] {
        for ((config, case), partner) in base.iter().zip(&mut partners) {
            let Some(first) = case.first().filter(|_| partner.is_none()) else {
                continue;
            };
            let number = by_id.get(&first.id).into_iter().flatten().find(|number| {
                left[**number]
                    .as_ref()
                    .is_some_and(|(other, _)| !exactly || other == config)
            });
            *partner = number.and_then(|number| left[*number].take().map(|(_, case)| case));
        }
    }
    let name = |case: &SideCase| case.first().map(|case| case.id.clone());
    for ((_, case), partner) in base.into_iter().zip(partners) {
        match partner {
            Some(partner) => pairs.both.push((case, partner)),
            None => pairs.only_in_base.extend(name(&case)),
        }
    }
    let left = left.iter().flatten();
    pairs.only_in_new = left.filter_map(|(_, case)| name(case)).collect();
    pairs
}

/// What was asked for differently, field by field: the case's settings, then what flows have of their own.
pub(super) fn settings_that_differ(base: &CaseConfig, new: &CaseConfig) -> Vec<String> {
    let (base, new) = (asked(base), asked(new));
    let mut told = rows_that_differ(&base.settings, &new.settings, |_| true);
    for (name, flow) in &base.flows {
        let Some(other) = new.flows.get(name) else {
            told.push(format!("flow {name}: only in the base"));
            continue;
        };
        if (&flow.from, &flow.to) != (&other.from, &other.to) {
            told.push(format!(
                "flow {name}: {} → {} in the base, {} → {} in the new results",
                flow.from, flow.to, other.from, other.to
            ));
        }
        let is_own = |row: &Row| {
            !row.is_equal(&base.settings, &flow.settings)
                || !row.is_equal(&new.settings, &other.settings)
        };
        let rows = rows_that_differ(&flow.settings, &other.settings, is_own);
        told.extend(rows.into_iter().map(|text| format!("flow {name}: {text}")));
    }
    let added = new
        .flows
        .keys()
        .filter(|name| !base.flows.contains_key(*name));
    told.extend(added.map(|name| format!("flow {name}: only in the new results")));
    told
}

fn rows_that_differ(
    base: &Settings,
    new: &Settings,
    is_told: impl Fn(&Row) -> bool,
) -> Vec<String> {
    ROWS.iter()
        .filter(|row| !row.is_equal(base, new) && is_told(row))
        .map(|row| {
            let [base, new] = [base, new].map(|side| match row.text(side) {
                text if text.is_empty() => "not set".to_owned(),
                text => text,
            });
            format!("{}: {base} in the base, {new} in the new results", row.flag)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn file(cases: &[(&str, f64)]) -> Loaded {
        let cases = cases.iter().map(|(id, seconds)| CaseResult {
            id: (*id).to_owned(),
            config: Settings::from([("duration", seconds.to_string().as_str())]).into(),
            ..CaseResult::default()
        });
        sample::file(cases.collect())
    }

    #[test]
    fn cases_are_paired_by_what_they_are_and_not_by_place() {
        let base = [file(&[("a", 1.0), ("b", 1.0)]), file(&[("b", 1.0)])];
        let new = [file(&[("c", 1.0), ("b", 1.0), ("a", 1.0)])];
        let pairs = pair(&base.each_ref(), &new.each_ref());
        let ids = pairs.both.iter().map(|(base, new)| {
            let id = &*base.first().unwrap().id;
            (id, base.files.len(), new.files.len())
        });
        assert!(ids.eq([("a", 1, 1), ("b", 2, 1)]));
        assert!(pairs.only_in_base.is_empty());
        assert_eq!(pairs.only_in_new, ["c"]);
    }

    #[test]
    fn other_settings_pair_only_where_nothing_is_closer() {
        let base = [file(&[("a", 1.0)]), file(&[("a", 5.0)])];
        let new = [file(&[("a", 5.0)])];
        let pairs = pair(&base.each_ref(), &new.each_ref());
        assert_eq!(pairs.both.len(), 1);
        let paired = pairs.both[0].0.first().unwrap();
        assert_eq!(paired.config.duration_seconds, "5s".parse().ok());
        assert_eq!(pairs.only_in_base, ["a"]);
        let near = [file(&[("a", 2.0)])];
        let pairs = pair(&near.each_ref(), &new.each_ref());
        let (base, new) = &pairs.both[0];
        let [base, new] = [base, new].map(|side| &side.first().unwrap().config);
        let told = settings_that_differ(base, new);
        assert_eq!(told, ["duration: 2s in the base, 5s in the new results"]);
    }

    #[test]
    fn what_flows_were_asked_differently_is_told_with_their_names() {
        let base = sample::mixed().cases.remove(0).config;
        assert_eq!(settings_that_differ(&base, &base), [""; 0]);
        let mut reordered = base.clone();
        reordered.flows.reverse();
        assert_eq!(asked(&base), asked(&reordered));
        let mut new = base.clone();
        new.settings.tx_depth = 64;
        new.flows[1].settings.insert("qps".to_owned(), 3.into());
        new.flows[2].name = "other".to_owned();
        let told = [
            "tx-depth: 128 in the base, 64 in the new results",
            "flow back: only in the base",
            "flow large: qps: 2 in the base, 3 in the new results",
            "flow other: only in the new results",
        ];
        assert_eq!(settings_that_differ(&base, &new), told);
    }
}
