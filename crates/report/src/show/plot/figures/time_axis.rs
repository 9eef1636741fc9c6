//! Result files on an axis: by the time at which they were begun, or by revision where they were all made on
//! one day, as when two revisions are measured in turns. It must not know metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::results::load::Loaded;
use crate::show::plot::draw::{Scale, Tick};
use crate::show::plot::rows::settings::{minute, revision};

/// Places of all files.
#[derive(Debug)]
pub(super) struct Moments {
    places: BTreeMap<PathBuf, f64>,
    /// Place, label and revision, by place.
    files: Vec<(f64, String, Option<String>)>,
    by_revision: bool,
    by_date: bool,
}

fn begun(loaded: &Loaded) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(&loaded.result.started_at, &Rfc3339).ok()
}

/// Places for files; `None` for less than two. Files whose time cannot be read have no place by date.
pub(super) fn moments(results: &[Loaded]) -> Option<Moments> {
    let mut files: Vec<(&Loaded, OffsetDateTime)> = results
        .iter()
        .filter_map(|loaded| Some((loaded, begun(loaded)?)))
        .collect();
    files.sort_by(|a, b| (a.1, &a.0.path).cmp(&(b.1, &b.0.path)));
    let (first, last) = (files.first()?.1, files.last()?.1);
    if files.len() < 2 {
        return None;
    }
    let mut revisions: Vec<Option<String>> = Vec::new();
    for (loaded, _) in &files {
        let revision = revision(&loaded.result);
        if !revisions.contains(&revision) {
            revisions.push(revision);
        }
    }
    let one_day = first.date() == last.date();
    let (by_revision, by_date) = (one_day && revisions.len() > 1, !one_day);
    // Within a revision files stand side by side, in the order in which they were made.
    let mut files: Vec<(&Loaded, OffsetDateTime)> = files;
    if by_revision {
        files.sort_by_key(|(loaded, _)| {
            let revision = revision(&loaded.result);
            revisions.iter().position(|other| *other == revision)
        });
    }
    let mut placed = Moments {
        places: BTreeMap::new(),
        files: Vec::new(),
        by_revision,
        by_date,
    };
    for (index, (loaded, at)) in files.into_iter().enumerate() {
        let place = if by_date {
            // Files of the same second stay apart and in order.
            (at - first).as_seconds_f64() + index as f64 * 1e-3
        } else {
            index as f64
        };
        let revision = revision(&loaded.result);
        let text = minute(&loaded.result.started_at);
        let label = if by_revision {
            revision.clone().unwrap_or_else(|| "no revision".to_owned())
        } else if by_date {
            text.chars().take(10).collect()
        } else {
            text.chars().skip(11).collect()
        };
        placed.places.insert(loaded.path.clone(), place);
        placed.files.push((place, label, revision));
    }
    Some(placed)
}

impl Moments {
    /// A file's place.
    pub(super) fn place(&self, loaded: &Loaded) -> Option<f64> {
        self.places.get(&loaded.path).copied()
    }

    /// What the files are in the order of.
    pub(super) fn kind(&self) -> &'static str {
        if self.by_revision {
            "revisions"
        } else {
            "time"
        }
    }

    pub(super) fn axis_title(&self) -> String {
        if self.by_revision {
            "git revision, files side by side in the order in which they were made".to_owned()
        } else if self.by_date {
            "begun on (UTC)".to_owned()
        } else {
            "begun at (UTC), files side by side".to_owned()
        }
    }

    pub(super) fn scale(&self) -> Scale {
        let place = |file: Option<&(f64, String, Option<String>)>| file.map_or(0.0, |file| file.0);
        Scale::linear(place(self.files.first()), place(self.files.last())).widened(0.03)
    }

    /// The first file of each label has it.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut last = None;
        let first = self.files.iter().filter(|(_, label, _)| {
            let new = last != Some(label);
            last = Some(label);
            new
        });
        named(first.map(|(place, label, _)| (*place, label.clone())))
    }

    /// Where the revision changed, half way between the two files, and to what.
    pub(super) fn changes(&self) -> impl Iterator<Item = (f64, &str)> {
        let changed = self.files.windows(2).filter(|pair| pair[0].2 != pair[1].2);
        changed.map(|pair| {
            let revision = pair[1].2.as_deref().unwrap_or("no revision");
            (f64::midpoint(pair[0].0, pair[1].0), revision)
        })
    }
}

/// Distinct names at their places, for an axis.
fn named(places: impl Iterator<Item = (f64, String)>) -> Vec<Tick> {
    let mut seen = BTreeSet::new();
    places
        .filter(|(value, _)| seen.insert(value.to_bits()))
        .map(|(value, label)| Tick { value, label })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn file(name: &str, started_at: &str, git: &str) -> Loaded {
        let mut file = sample::file(Vec::new());
        file.path = name.into();
        file.result.started_at = started_at.to_owned();
        file.result.tool.git = Some(git.to_owned());
        file
    }

    #[test]
    fn several_days_are_an_axis_of_time() {
        let files = [
            file("b", "2026-11-03T00:00:00Z", "bbb"),
            file("a", "2026-11-01T00:00:00Z", "aaa"),
            file("c", "2026-11-04T00:00:00Z", "bbb"),
            file("broken", "yesterday", "bbb"),
        ];
        let moments = moments(&files).unwrap();
        let place = |file| moments.place(file).map(|place| (place / 86400.0).round());
        let places = files.each_ref().map(place);
        assert_eq!(places, [Some(2.0), Some(0.0), Some(3.0), None]);
        assert_eq!(moments.changes().count(), 1);
        assert_eq!(moments.kind(), "time");
    }

    #[test]
    fn one_day_of_two_revisions_is_an_axis_of_revisions() {
        let files = [
            file("a", "2026-11-01T00:00:00Z", "aaa"),
            file("b", "2026-11-01T00:10:00Z", "bbb"),
            file("c", "2026-11-01T00:20:00Z", "aaa-dirty"),
            file("d", "2026-11-01T00:30:00Z", "aaa"),
        ];
        let moments = moments(&files).unwrap();
        let labels: Vec<_> = moments.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["aaa", "bbb", "aaa-dirty"]);
        assert_eq!(moments.place(&files[3]), Some(1.0));
        assert!(super::moments(&files[..1]).is_none());
    }
}
