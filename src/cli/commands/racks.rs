//! The file that says which rack each node is in: lines `NODE RACK`, with brackets as in `--nodes`.

use std::collections::HashMap;
use std::path::Path;

use plan::node_list::{ListError, MOST_NODES, expand};
use plan::small_file;
use results::text;

/// So much of a line that is none is shown.
const MAX_SHOWN: usize = 60;

/// Why a file of racks cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum RacksError {
    #[error("cannot read the racks {file}: {error}")]
    Read { file: String, error: std::io::Error },
    #[error("{file} has more than 1 MiB: lines are NODE RACK")]
    TooLarge { file: String },
    #[error(
        "{file}, line {line}: `{text}` is not a node and its rack: write NODE RACK, as in node[01-16] rack1"
    )]
    Line { file: String, line: usize, text: String },
    #[error("{file}, line {line}: {error}")]
    Nodes { file: String, line: usize, error: ListError },
    #[error("{file}, line {line}: {node} is in {rack} here and in {other} on an earlier line")]
    Twice { file: String, line: usize, node: String, rack: String, other: String },
    #[error("{file} has more than {MOST_NODES} nodes")]
    TooMany { file: String },
    #[error("{file} names no node")]
    Empty { file: String },
}

/// Reads the racks of nodes.
///
/// # Errors
/// A file that cannot be read, a line that is none, or a node in two racks.
pub fn read(path: &Path) -> Result<HashMap<String, String>, RacksError> {
    let file = text::path(path);
    match small_file::read(path) {
        Ok(Some(bytes)) => parse(&file, &String::from_utf8_lossy(&bytes)),
        Ok(None) => Err(RacksError::TooLarge { file }),
        Err(error) => Err(RacksError::Read { file, error }),
    }
}

fn parse(file: &str, lines: &str) -> Result<HashMap<String, String>, RacksError> {
    let mut racks: HashMap<String, String> = HashMap::new();
    for (line, whole) in (1..).zip(lines.lines()) {
        let text = whole.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (nodes, name) = match words[..] {
            // The list of another file would have no line here.
            [nodes, rack] if !nodes.starts_with('@') => (nodes, rack),
            _ => {
                let (file, text) = (file.to_owned(), text::printable(text, MAX_SHOWN));
                return Err(RacksError::Line { file, line, text });
            }
        };
        let nodes = expand(nodes).map_err(|error| RacksError::Nodes {
            file: file.to_owned(),
            line,
            error,
        })?;
        let rack = name.to_owned();
        for node in nodes {
            match racks.insert(node.clone(), rack.clone()) {
                Some(other) if other != rack => {
                    return Err(RacksError::Twice {
                        file: file.to_owned(),
                        line,
                        node,
                        rack,
                        other,
                    });
                }
                _ => {}
            }
        }
        if racks.len() > MOST_NODES as usize {
            return Err(RacksError::TooMany { file: file.to_owned() });
        }
    }
    if racks.is_empty() { Err(RacksError::Empty { file: file.to_owned() }) } else { Ok(racks) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    #[test]
    fn lines_have_nodes_and_their_rack() {
        let racks = parse("r", "# ours\n\nnode[08-10] r1 # new\nleft,right\tr2\r\n").unwrap();
        assert_eq!(racks.len(), 5);
        let told = ["node08", "node10", "left", "right", "node11"]
            .map(|node| racks.get(node).map(String::as_str));
        assert_eq!(told, [Some("r1"), Some("r1"), Some("r2"), Some("r2"), None]);
    }

    #[test]
    fn lines_that_are_none_say_which_and_why() {
        for (lines, told) in [
            ("a r1\nb", "r, line 2: `b` is not a node"),
            ("a b r1", "line 1: `a b r1` is not a node"),
            ("@other r1", "line 1: `@other r1` is not a node"),
            ("a[1- r1", "line 1: `a[1-` has a bracket"),
            ("a r1\na[1-2] r1\na r2", "line 3: a is in r2 here and in r1"),
            ("# nothing", "r names no node"),
        ] {
            has(parse("r", lines).unwrap_err().to_string(), [told]);
        }
    }
}
