//! Lists of nodes as people and launchers write them: `a,b[01-16],c:18600/mlx5_1`, with brackets as in Slurm
//! (scontrol(1), "show hostlist"), and files of such lists.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::small_file::{self, MAX_BYTES};

/// Items that a list makes at most.
pub const MOST_NODES: u32 = 4_096;

/// Why a text is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ListError {
    #[error("`{0}` has a bracket that does not close: write it as in node[01-16]")]
    Open(String),
    #[error("`{0}` has a bracket that closes and was not opened: write it as in node[01-16]")]
    Closed(String),
    #[error(
        "`{item}`: `{part}` is neither a number nor a range in brackets: write them as in node[01-16,20]"
    )]
    Part { item: String, part: String },
    #[error("`{item}`: the range `{part}` runs backwards")]
    Backwards { item: String, part: String },
    #[error("the list has more than {MOST_NODES} nodes")]
    TooMany,
    #[error("cannot read the list of nodes {}: {error}", path.display())]
    Read { path: PathBuf, error: String },
    #[error("{} is larger than {MAX_BYTES} bytes; that is not a list of nodes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} names no node: write one a line, or as in node[01-16]", .0.display())]
    Empty(PathBuf),
}

/// The items of a list, brackets expanded, in their order. `@FILE` is the list in a file: items a line or with commas, and
/// what follows a `#` is left out.
///
/// # Errors
/// Brackets that do not fit, too many items, or a file that cannot be read.
pub fn expand(text: &str) -> Result<Vec<String>, ListError> {
    match text.strip_prefix('@') {
        Some(path) => from_file(path.into()),
        None => items_of(text),
    }
}

fn from_file(path: PathBuf) -> Result<Vec<String>, ListError> {
    let bytes = small_file::read(&path)
        .map_err(|error| unread(&path, error.to_string()))?
        .ok_or_else(|| ListError::TooLarge(path.clone()))?;
    let text = String::from_utf8(bytes).map_err(|error| unread(&path, error.to_string()))?;
    let mut items = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        for word in line.split_whitespace() {
            items.extend(items_of(word.trim_end_matches(','))?);
        }
    }
    if items.is_empty() { Err(ListError::Empty(path)) } else { Ok(items) }
}

fn unread(path: &Path, error: String) -> ListError {
    ListError::Read { path: path.to_owned(), error }
}

fn items_of(text: &str) -> Result<Vec<String>, ListError> {
    let mut items = Vec::new();
    for item in split(text)? {
        push_expanded(item, &mut items)?;
    }
    Ok(items)
}

/// The parts between commas outside brackets.
fn split(text: &str) -> Result<Vec<&str>, ListError> {
    let mut parts = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, letter) in text.char_indices() {
        match (letter, is_inside) {
            ('[', false) => is_inside = true,
            (']', true) => is_inside = false,
            ('[', true) => return Err(ListError::Open(text[start..].to_owned())),
            (']', false) => return Err(ListError::Closed(text[start..=at].to_owned())),
            (',', false) => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(ListError::Open(text[start..].to_owned()));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

/// Adds an item for each of its bracket's numbers; several brackets multiply. The brackets of an IPv6 address stay.
fn push_expanded(item: &str, items: &mut Vec<String>) -> Result<(), ListError> {
    let mut made = vec![String::new()];
    let mut rest = item;
    while let Some((before, (inside, after))) =
        rest.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
    {
        rest = after;
        if inside.contains(':') {
            for text in &mut made {
                // Writing to a String cannot fail.
                let _ = write!(text, "{before}[{inside}]");
            }
            continue;
        }
        let mut longer = Vec::new();
        for text in &made {
            for part in inside.split(',') {
                for number in numbers(item, part)? {
                    longer.push(format!("{text}{before}{number}"));
                    if longer.len() > MOST_NODES as usize {
                        return Err(ListError::TooMany);
                    }
                }
            }
        }
        made = longer;
    }
    items.extend(made.into_iter().map(|text| text + rest));
    if items.len() > MOST_NODES as usize { Err(ListError::TooMany) } else { Ok(()) }
}

/// `01-03` is 01, 02, 03; `7` is itself.
fn numbers<'a>(
    item: &str,
    part: &'a str,
) -> Result<impl Iterator<Item = String> + use<'a>, ListError> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (Some(from), Some(to)) = (number_of(first), number_of(last)) else {
        return Err(ListError::Part { item: item.to_owned(), part: part.to_owned() });
    };
    if from > to {
        return Err(ListError::Backwards { item: item.to_owned(), part: part.to_owned() });
    }
    let width = first.len();
    Ok((from..=to).map(move |number| format!("{number:0width$}")))
}

fn number_of(text: &str) -> Option<u32> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse::<u32>().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use results::sample::has;

    #[test]
    fn brackets_are_expanded_as_slurm_does() {
        let whole = ["a", "b01:18600/mlx5_1", "b02:18600/mlx5_1"];
        for (text, items) in [
            ("a", &["a"][..]),
            ("a,b", &["a", "b"]),
            ("node[1-3]", &["node1", "node2", "node3"]),
            ("n[08-10,3]", &["n08", "n09", "n10", "n3"]),
            ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("a,b[01-02]:18600/mlx5_1", &whole),
            ("[::1]:7,x", &["[::1]:7", "x"]),
            ("", &[""]),
            ("a,,b", &["a", "", "b"]),
        ] {
            assert_eq!(expand(text).unwrap(), items, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_says_why() {
        for (text, words) in [
            ("a,b[01-16", "`b[01-16` has a bracket that does not close"),
            ("a[[1]", "does not close"),
            ("a]", "was not opened"),
            ("n[]", "neither a number nor a range"),
            ("n[1-]", "`1-` is neither a number"),
            ("n[a]", "`a` is neither a number"),
            ("n[3-1]", "runs backwards"),
            ("n[1-5000]", "more than 4096"),
            ("n[1-99]m[1-99]", "more than 4096"),
            ("@/nowhere/at/all", "cannot read the list of nodes /nowhere"),
        ] {
            has(expand(text).unwrap_err().to_string(), [words]);
        }
    }

    #[test]
    fn a_file_has_nodes_by_lines_and_commas() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes");
        std::fs::write(&path, "# all\na,b[1-2]\n c  # the last\n\n").unwrap();
        let list = format!("@{}", path.display());
        assert_eq!(expand(&list).unwrap(), ["a", "b1", "b2", "c"]);
        std::fs::write(&path, "# none\n").unwrap();
        assert!(matches!(expand(&list), Err(ListError::Empty(_))));
        // Cut off, it would be another list.
        std::fs::write(&path, "node1\n".repeat(200_000)).unwrap();
        assert!(matches!(expand(&list), Err(ListError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn a_range_has_as_many_items_as_it_says(from in 0u32..1000, length in 1u32..100) {
            let items = expand(&format!("n[{from}-{}]", from + length - 1)).unwrap();
            prop_assert_eq!(items.len(), length as usize);
            prop_assert_eq!(&items[0], &format!("n{from}"));
        }

        #[test]
        fn no_text_panics(text in "[a-c\\[\\]0-9,:@-]{0,24}") {
            let _ = expand(&text);
        }
    }
}
