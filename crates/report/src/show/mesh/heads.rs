//! Names of nodes that fit above columns.

use std::collections::BTreeSet;

use crate::judge::mesh::Matrix;

/// Widest name that is shown whole.
const WIDEST: usize = 16;
/// Narrowest column, for a figure.
const NARROWEST: usize = 6;
/// A column of medians at the right.
const MEDIAN: usize = 8;
/// What stands in the corner.
const CORNER: usize = 14;

pub(super) struct Heads {
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) label: usize,
    pub(super) cell: usize,
}

/// Heads with which a matrix fits into so many columns: names, or numbers at both sides; `None` where there are none.
pub(super) fn fitting(matrix: &Matrix, columns: usize) -> Option<Heads> {
    let names = cut(&matrix.nodes);
    let numbers: Vec<String> = (1..=names.len()).map(|it| format!("#{it}")).collect();
    let numbered: Vec<String> =
        numbers.iter().zip(&names).map(|(number, name)| format!("{number} {name}")).collect();
    let heads = [(names.clone(), names), (numbered, numbers)].map(|(rows, columns)| Heads {
        label: widest(&rows).max(CORNER),
        cell: widest(&columns).max(NARROWEST),
        rows,
        columns,
    });
    // A figure has a mark behind it.
    heads.into_iter().find(|it| it.label + 1 + it.columns.len() * (it.cell + 1) + MEDIAN <= columns)
}

/// Names that are not too wide: of the others the end, which distinguishes nodes.
pub(super) fn cut(names: &[String]) -> Vec<String> {
    // Domains are the same mostly.
    let hosts: Vec<String> = names.iter().map(|name| host(name).to_owned()).collect();
    let are_unique = hosts.iter().collect::<BTreeSet<_>>().len() == names.len();
    let unique = if are_unique { &hosts } else { names };
    unique
        .iter()
        .map(|name| match name.chars().count().saturating_sub(WIDEST) {
            0 => name.clone(),
            more => "…".chars().chain(name.chars().skip(more + 1)).collect(),
        })
        .collect()
}

/// A host's name without its domain; an address stays.
fn host(name: &str) -> &str {
    match name.split_once('.') {
        Some((host, rest))
            if host.contains(char::is_alphabetic) && rest.contains(char::is_alphabetic) =>
        {
            host
        }
        _ => name,
    }
}

fn widest(names: &[String]) -> usize {
    names.iter().map(|name| name.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::names;

    #[test]
    fn heads_tell_nodes_apart() {
        let cut_of = |all: &[&str]| cut(&names(all));
        assert_eq!(cut_of(&["n1.cluster.org", "n2.cluster.org"]), ["n1", "n2"]);
        let addresses = ["10.0.0.1", "10.0.0.2"];
        assert_eq!(cut_of(&addresses), addresses);
        assert_eq!(cut(&names(&["a.x", "a.y"])), ["a.x", "a.y"]);
        let long = cut(&names(&["a-very-long-name-of-host-17"]));
        assert_eq!(long, ["…name-of-host-17"]);
    }
}
