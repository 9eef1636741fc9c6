//! Names of many nodes beside an axis: short where all begin or end alike.

/// Nodes from which on names are shortened.
const SHORTENED_FROM: usize = 9;
/// What names share is worth leaving out from this length on.
const LEAST_SHARED: usize = 3;

/// Names of nodes as they are written at an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// What all of them begin and end with, around `…`; empty where they are whole.
    pub(super) shared: String,
    pub(super) labels: Vec<String>,
}

impl Names {
    fn whole(names: &[&str]) -> Names {
        Names {
            shared: String::new(),
            labels: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    pub(super) fn of(names: &[&str]) -> Names {
        if names.len() < SHORTENED_FROM {
            return Names::whole(names);
        }
        // A number is never cut.
        let begins = names
            .iter()
            .fold(names[0], |shared, name| beginning(shared, name))
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        let rests: Vec<&str> = names.iter().map(|name| &name[begins.len()..]).collect();
        let ends = rests.iter().fold(rests[0], |shared, name| end(shared, name));
        // Nor is a part of a domain's name.
        let domain = ends.find('.').map_or("", |dot| &ends[dot..]);
        let labels: Vec<&str> =
            rests.iter().map(|rest| &rest[..rest.len() - domain.len()]).collect();
        let is_worth_it = begins.len() + domain.len() >= LEAST_SHARED;
        if !is_worth_it || labels.iter().any(|label| label.is_empty()) {
            return Names::whole(names);
        }
        Names {
            shared: format!("{begins}…{domain}"),
            labels: labels.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The title of an axis of them: `what`, and what the names share.
    pub(super) fn title(&self, what: &str) -> String {
        match self.shared.as_str() {
            "" => what.to_owned(),
            shared => format!("{what} ({shared})"),
        }
    }
}

fn beginning<'n>(one: &'n str, other: &str) -> &'n str {
    let alike = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    &one[..alike.map(|(letter, _)| letter.len_utf8()).sum()]
}

fn end<'n>(one: &'n str, other: &str) -> &'n str {
    let length: usize = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(letter, _)| letter.len_utf8())
        .sum();
    &one[one.len() - length..]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_all_share_is_said_once() {
        let numbered = |from: &str, to: &str| {
            let names: Vec<String> = (1..=12).map(|number| format!("{from}{number}{to}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Names::of(&names)
        };
        let names = numbered("node1", ".rack3.example.com");
        assert_eq!(names.shared, "node….rack3.example.com");
        assert_eq!((&*names.labels[0], &*names.labels[11]), ("11", "112"));
        assert_eq!(names.title("to"), "to (node….rack3.example.com)");
        let names = numbered("n", "");
        assert_eq!((&*names.shared, &*names.labels[9]), ("", "n10"));
        let few = Names::of(&["node1", "node2"]);
        assert_eq!((&*few.shared, &*few.labels[1]), ("", "node2"));
        assert_eq!(few.title("to"), "to");
    }

    proptest! {
        #[test]
        fn short_names_are_told_apart(names in proptest::collection::btree_set("[ab0-9.é]{1,6}", 0..20)) {
            let whole: Vec<String> = names.iter().map(|name| format!("host-é{name}.com")).collect();
            let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
            let names = Names::of(&whole);
            let apart: BTreeSet<&String> = names.labels.iter().collect();
            prop_assert_eq!(apart.len(), whole.len());
        }
    }
}
