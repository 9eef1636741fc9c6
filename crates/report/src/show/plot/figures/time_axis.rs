//! Result files on an axis: by the time at which they were begun, or by revision where they were all made on one
//! day, as when two revisions are measured in turns.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::observe::format::each_once;
use crate::results::load::Loaded;
use crate::show::plot::draw::{Scale, Tick};
use crate::show::plot::rows::settings::{minute, revision};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Days,
    Minutes,
    Revisions,
}

#[derive(Debug)]
pub(super) struct Moments<'a> {
    order: Order,
    files: Vec<(f64, &'a Loaded)>,
}

fn begun(loaded: &Loaded) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(&loaded.result.started_at, &Rfc3339).ok()
}

fn revision_of(loaded: &Loaded) -> String {
    revision(&loaded.result).unwrap_or_else(|| "no revision".to_owned())
}

/// Places for files; `None` for less than two. Files whose time cannot be read have no place by date.
pub(super) fn moments(results: &[Loaded]) -> Option<Moments<'_>> {
    let mut files: Vec<(&Loaded, OffsetDateTime)> =
        results.iter().filter_map(|loaded| Some((loaded, begun(loaded)?))).collect();
    files.sort_by(|a, b| (a.1, &a.0.path).cmp(&(b.1, &b.0.path)));
    let (first, last) = (files.first()?.1, files.last()?.1);
    if files.len() < 2 {
        return None;
    }
    let revisions = each_once(files.iter().map(|(loaded, _)| revision_of(loaded)));
    let order = match (first.date() == last.date(), revisions.len()) {
        (false, _) => Order::Days,
        (true, 1) => Order::Minutes,
        (true, _) => Order::Revisions,
    };
    // Within a revision files stand side by side, in the order in which they were made.
    if order == Order::Revisions {
        files.sort_by_key(|(loaded, _)| {
            let own = revision_of(loaded);
            revisions.iter().position(|other| *other == own)
        });
    }
    let places = files
        .into_iter()
        .enumerate()
        .map(|(index, (loaded, at))| {
            let place = match order {
                // Files of the same second stay apart and in order.
                Order::Days => (at - first).as_seconds_f64() + index as f64 * 1e-3,
                _ => index as f64,
            };
            (place, loaded)
        })
        .collect();
    Some(Moments { order, files: places })
}

impl Moments<'_> {
    pub(super) fn place(&self, loaded: &Loaded) -> Option<f64> {
        let found = self.files.iter().find(|file| file.1.path == loaded.path);
        found.map(|file| file.0)
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.order {
            Order::Revisions => "revisions",
            _ => "time",
        }
    }

    pub(super) fn axis_title(&self) -> &'static str {
        match self.order {
            Order::Revisions => "git revision, files side by side in order of time",
            Order::Days => "begun on (UTC)",
            Order::Minutes => "begun at (UTC), files side by side",
        }
    }

    pub(super) fn scale(&self) -> Scale {
        let [first, last] =
            [self.files.first(), self.files.last()].map(|file| file.map_or(0.0, |file| file.0));
        Scale::linear(first, last).widened(0.03)
    }

    /// The first file of each label has it.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        for (value, loaded) in &self.files {
            let minute = minute(&loaded.result.started_at);
            let label = match self.order {
                Order::Revisions => revision_of(loaded),
                Order::Days => minute.chars().take(10).collect(),
                Order::Minutes => minute.chars().skip(11).collect(),
            };
            if ticks.last().is_none_or(|last| last.label != label) {
                ticks.push(Tick { value: *value, label });
            }
        }
        ticks
    }

    /// Where the revision changed, half way between the two files, and to what.
    pub(super) fn changes(&self) -> impl Iterator<Item = (f64, String)> {
        self.files
            .windows(2)
            .map(|pair| (pair, [pair[0].1, pair[1].1].map(revision_of)))
            .filter(|(_, [before, after])| before != after)
            .map(|(pair, [_, after])| (f64::midpoint(pair[0].0, pair[1].0), after))
    }
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
        let places =
            files.each_ref().map(|file| moments.place(file).map(|place| (place / 86400.0).round()));
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
