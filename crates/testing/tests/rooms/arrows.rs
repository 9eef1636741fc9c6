//! Arrows between files, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};

/// From a file to the files that it imports, with the names.
pub type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Groups of files of which each reaches each other.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows
        .keys()
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.as_str()]);
            while let Some(at) = open.pop() {
                for to in arrows.get(at).into_iter().flat_map(BTreeMap::keys) {
                    if seen.insert(to.as_str()) {
                        open.push(to);
                    }
                }
            }
            (from.as_str(), seen)
        })
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, seen) in &reached {
        if seen.contains(from) {
            found.insert(
                seen.iter()
                    .filter(|to| reached.get(**to).is_some_and(|back| back.contains(from)))
                    .map(|file| (*file).to_owned())
                    .collect(),
            );
        }
    }
    found.into_iter().collect()
}

#[test]
fn a_circle_is_found_and_a_way_is_none() {
    let arrows: Arrows = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")].into_iter().fold(
        Arrows::new(),
        |mut arrows, (from, to)| {
            arrows.entry(from.into()).or_default().entry(to.into()).or_default();
            arrows
        },
    );
    assert_eq!(circles(&arrows), [["b", "c"]]);
}
