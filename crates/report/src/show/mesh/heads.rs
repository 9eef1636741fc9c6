//! Names of nodes that fit above columns. It must not know figures.

use crate::judge::mesh::Matrix;

/// Widest name that is told whole.
const WIDEST: usize = 16;
/// Narrowest column, for a figure.
const NARROWEST: usize = 6;
/// A column of medians at the right.
const MEDIAN: usize = 8;
/// What stands in the corner.
const CORNER: usize = 14;

/// Names for rows and columns of a matrix, and how wide both are.
pub(super) struct Heads {
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) label: usize,
    pub(super) cell: usize,
}

/// Heads with which a matrix fits into so many columns; `None` where there are none.
pub(super) fn fitting(matrix: &Matrix, columns: usize) -> Option<Heads> {
    let count = matrix.nodes.len();
    let names = cut(&matrix.nodes);
    // A figure has a mark behind it.
    let fits = |label: usize, cell: usize| label + 1 + count * (cell + 1) + MEDIAN <= columns;
    let label = widest(&names).max(CORNER);
    let cell = widest(&names).max(NARROWEST);
    if fits(label, cell) {
        return Some(Heads {
            rows: names.clone(),
            columns: names,
            label,
            cell,
        });
    }
    let short = without_common_start(&names);
    let cell = widest(&short).max(NARROWEST);
    if fits(label, cell) {
        return Some(Heads {
            rows: names,
            columns: short,
            label,
            cell,
        });
    }
    let numbers: Vec<String> = (1..=count).map(|number| format!("#{number}")).collect();
    let numbered = numbers.iter().zip(&names);
    let rows: Vec<String> = numbered
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    let label = widest(&rows).max(CORNER);
    fits(label, NARROWEST).then_some(Heads {
        rows,
        columns: numbers,
        label,
        cell: NARROWEST,
    })
}

/// Names that are not too wide: of the others the end, which tells nodes apart.
pub(super) fn cut(names: &[String]) -> Vec<String> {
    let cut = |name: &String| {
        let count = name.chars().count();
        match count > WIDEST {
            true => format!(
                "…{}",
                name.chars().skip(count - WIDEST + 1).collect::<String>()
            ),
            false => name.clone(),
        }
    };
    // Domains are the same mostly.
    let hosts: Vec<String> = names.iter().map(|name| host(name).to_owned()).collect();
    let mut sorted = hosts.clone();
    sorted.sort();
    sorted.dedup();
    let unique = if sorted.len() == names.len() {
        &hosts
    } else {
        names
    };
    unique.iter().map(cut).collect()
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

/// Names without what all begin with; `node` of `node01` goes, a digit stays.
fn without_common_start(names: &[String]) -> Vec<String> {
    let Some(first) = names.first() else {
        return Vec::new();
    };
    let is_common = |start: &&str| {
        let mut others = names.iter().map(|name| name.strip_prefix(*start));
        others.all(|rest| rest.is_some_and(|rest| !rest.is_empty()))
    };
    let ends = first.char_indices().map(|(at, _)| &first[..at]);
    let stays = |start: &&str| !start.ends_with(|end: char| end.is_ascii_digit());
    let common = ends.filter(stays).rfind(is_common).unwrap_or("");
    names
        .iter()
        .map(|name| name[common.len()..].to_owned())
        .collect()
}

fn widest(names: &[String]) -> usize {
    let widths = names.iter().map(|name| name.chars().count());
    widths.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn heads_tell_nodes_apart() {
        let of = |all: &[&str]| without_common_start(&names(all));
        assert_eq!(of(&["node01", "node02", "node11"]), ["01", "02", "11"]);
        assert_eq!(of(&["a", "b"]), ["a", "b"]);
        assert_eq!(of(&["gpu-a1", "gpu-b1"]), ["a1", "b1"]);
        let cut_of = |all: &[&str]| cut(&names(all));
        assert_eq!(cut_of(&["n1.cluster.org", "n2.cluster.org"]), ["n1", "n2"]);
        let addresses = ["10.0.0.1", "10.0.0.2"];
        assert_eq!(cut_of(&addresses), addresses);
        assert_eq!(cut(&names(&["a.x", "a.y"])), ["a.x", "a.y"]);
        let long = cut(&names(&["a-very-long-name-of-host-17"]));
        assert_eq!(long, ["…name-of-host-17"]);
    }
}
