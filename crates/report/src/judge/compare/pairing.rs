//! Which cases of the two sides belong together: those that were configured alike, wherever they stand.

use std::collections::{BTreeMap, HashMap};

use super::facts::differ;
use results::load::Loaded;
use results::model::{CaseConfig, CaseResult};
use settings::{ROWS, Row, Settings};

/// A case as one side has it: the files that have it, by number within the side, and what each has.
pub(super) type SideCase<'a> = Vec<(usize, &'a CaseResult)>;

#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    /// On both sides, in the order of the base; same name, and same settings unless nothing closer was there.
    pub(super) both: Vec<[SideCase<'a>; 2]>,
    pub(super) only_in_base: Vec<String>,
    pub(super) only_in_new: Vec<String>,
}

/// What was asked for: the settings without what followed from device and path, and without those in which results
/// may differ.
#[derive(Clone, Debug, PartialEq)]
struct Requested {
    settings: Settings,
    /// By name, with the nodes from which and to which they go.
    flows: BTreeMap<String, ([String; 2], Settings)>,
}

fn without_free(mut settings: Settings) -> Settings {
    let usual = Settings::default();
    for row in ROWS.iter().filter(|row| row.may_differ) {
        row.copy(&mut settings, &usual);
    }
    settings
}

fn requested(config: &CaseConfig) -> Requested {
    Requested {
        settings: without_free(config.settings.clone()),
        flows: config
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let ends = [flow.from.clone(), flow.to.clone()];
                (flow.name.clone(), (ends, without_free(config.flow(index))))
            })
            .collect(),
    }
}

/// A side's cases, each once, in order of appearance, with what was asked for.
fn cases<'a>(side: &[&'a Loaded]) -> Vec<(&'a str, Requested, SideCase<'a>)> {
    let mut cases: Vec<(&str, Requested, SideCase)> = Vec::new();
    let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (file, loaded) in side.iter().copied().enumerate() {
        for case in &loaded.result.cases {
            let config = requested(&case.config);
            let known = by_id.entry(&case.id).or_default();
            match known.iter().find(|number| cases[**number].1 == config) {
                Some(number) => cases[*number].2.push((file, case)),
                None => {
                    known.push(cases.len());
                    cases.push((&case.id, config, vec![(file, case)]));
                }
            }
        }
    }
    cases
}

pub(super) fn pair<'a>(base: &[&'a Loaded], new: &[&'a Loaded]) -> Pairs<'a> {
    let (base, mut left) = (cases(base), cases(new));
    let mut partners: Vec<Option<SideCase>> = vec![None; base.len()];
    // Exact matches go first, so that a near one does not take what another case matches exactly.
    for exactly in [true, false] {
        for ((id, config, _), partner) in base.iter().zip(&mut partners) {
            if partner.is_some() {
                continue;
            }
            let mut others = left.iter();
            let found =
                others.position(|(other, its, _)| other == id && (!exactly || its == config));
            *partner = found.map(|place| left.remove(place).2);
        }
    }
    let mut pairs = Pairs::default();
    for ((id, _, case), partner) in base.into_iter().zip(partners) {
        match partner {
            Some(partner) => pairs.both.push([case, partner]),
            None => pairs.only_in_base.push(id.to_owned()),
        }
    }
    pairs.only_in_new = left.into_iter().map(|(id, ..)| id.to_owned()).collect();
    pairs
}

/// What was asked for differently, field by field: the case's settings, then what flows have of their own.
pub(super) fn settings_that_differ(base: &CaseConfig, new: &CaseConfig) -> Vec<String> {
    let (base, new) = (requested(base), requested(new));
    let mut differences = rows_that_differ([&base.settings, &new.settings], |_| true);
    for (name, (ends, flow)) in &base.flows {
        let Some((other_ends, other)) = new.flows.get(name) else {
            differences.push(format!("flow {name}: only in the base"));
            continue;
        };
        let flow_of = format!("flow {name}");
        if ends != other_ends {
            differences.push(differ(&flow_of, ends.join(" → "), other_ends.join(" → ")));
        }
        let rows = rows_that_differ([flow, other], |row: &Row| {
            !row.is_equal(&base.settings, flow) || !row.is_equal(&new.settings, other)
        });
        differences.extend(rows.into_iter().map(|text| format!("{flow_of}: {text}")));
    }
    let added = new.flows.keys().filter(|name| !base.flows.contains_key(*name));
    differences.extend(added.map(|name| format!("flow {name}: only in the new results")));
    differences
}

fn rows_that_differ([base, new]: [&Settings; 2], is_told: impl Fn(&Row) -> bool) -> Vec<String> {
    ROWS.iter()
        .filter(|row| !row.is_equal(base, new) && is_told(row))
        .map(|row| {
            let [base, new] = [base, new].map(|side| match row.text(side) {
                text if text.is_empty() => "not set".to_owned(),
                text => text,
            });
            differ(row.flag, base, new)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample;

    fn file(cases: &[(&str, f64)]) -> Loaded {
        sample::file(
            cases
                .iter()
                .map(|(id, seconds)| CaseResult {
                    id: (*id).to_owned(),
                    config: Settings::from([("duration", seconds.to_string().as_str())]).into(),
                    ..CaseResult::default()
                })
                .collect(),
        )
    }

    #[test]
    fn cases_are_paired_by_what_they_are_and_not_by_place() {
        let base = [file(&[("a", 1.0), ("b", 1.0)]), file(&[("b", 1.0)])];
        let new = [file(&[("c", 1.0), ("b", 1.0), ("a", 1.0)])];
        let pairs = pair(&base.each_ref(), &new.each_ref());
        let ids = pairs.both.iter().map(|[base, new]| (&*base[0].1.id, base.len(), new.len()));
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
        let paired = pairs.both[0][0][0].1;
        assert_eq!(paired.config.duration_seconds, "5s".parse().ok());
        assert_eq!(pairs.only_in_base, ["a"]);
        let near = [file(&[("a", 2.0)])];
        let pairs = pair(&near.each_ref(), &new.each_ref());
        let [base, new] = pairs.both[0].each_ref().map(|side| &side[0].1.config);
        let told = settings_that_differ(base, new);
        assert_eq!(told, ["duration: 2s in the base, 5s in the new results"]);
    }

    #[test]
    fn what_flows_were_asked_differently_is_told_with_their_names() {
        let base = sample::mixed().cases.remove(0).config;
        assert_eq!(settings_that_differ(&base, &base), [""; 0]);
        let mut reordered = base.clone();
        reordered.flows.reverse();
        assert_eq!(requested(&base), requested(&reordered));
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
