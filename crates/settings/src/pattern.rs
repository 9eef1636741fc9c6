//! Which nodes talk to which: a rule that makes flows out of a list of nodes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::{as_text, nearest};

/// A rule that makes flows out of a list of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pattern {
    /// Each node to each other one, in rounds in which no node has more than one flow.
    Pairs,
    /// Each node to the next one, the last to the first.
    Ring,
    /// Others to this node; the first one where none is named.
    Incast(Option<String>),
    /// This node to others; the first one where none is named.
    Outcast(Option<String>),
    /// Each node to each other one at once.
    AllToAll,
    /// Each node of one half of the list to one of the other half, and back.
    Bisection,
    /// Each node to itself: both ends of the flow are on it.
    Loop,
}

const WORDS: [&str; 7] = ["pairs", "ring", "incast", "outcast", "all-to-all", "bisection", "loop"];

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PatternError {
    #[error(
        "`{word}` is not a pattern: patterns are {}{}", WORDS.join(", "),
        .nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
    )]
    Unknown { word: String, nearest: Option<&'static str> },
    #[error("`{0}` names a node: only incast and outcast take one, as incast:NODE, outcast:NODE")]
    Node(String),
    #[error(
        "`{0}` names no node after the colon: write incast:NODE, or incast alone for the first one"
    )]
    NoNode(String),
}

impl Pattern {
    /// Its word, without a node.
    pub fn word(&self) -> &'static str {
        match self {
            Pattern::Pairs => "pairs",
            Pattern::Ring => "ring",
            Pattern::Incast(_) => "incast",
            Pattern::Outcast(_) => "outcast",
            Pattern::AllToAll => "all-to-all",
            Pattern::Bisection => "bisection",
            Pattern::Loop => "loop",
        }
    }

    /// The node that it names.
    pub fn node(&self) -> Option<&str> {
        match self {
            Pattern::Incast(node) | Pattern::Outcast(node) => node.as_deref(),
            _ => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let (word, node) = match text.split_once(':') {
            Some((_, "")) => return Err(PatternError::NoNode(text.to_owned())),
            Some((word, node)) => (word, Some(node.to_owned())),
            None => (text, None),
        };
        let is_named = node.is_some();
        let pattern = match word {
            "pairs" => Pattern::Pairs,
            "ring" => Pattern::Ring,
            "incast" => Pattern::Incast(node),
            "outcast" => Pattern::Outcast(node),
            "all-to-all" => Pattern::AllToAll,
            "bisection" => Pattern::Bisection,
            "loop" => Pattern::Loop,
            _ => {
                let nearest = nearest(word, &WORDS);
                return Err(PatternError::Unknown { word: word.to_owned(), nearest });
            }
        };
        if pattern.node().is_none() && is_named {
            Err(PatternError::Node(text.to_owned()))
        } else {
            Ok(pattern)
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self.node() {
            Some(node) => write!(f, ":{node}"),
            None => Ok(()),
        }
    }
}

as_text!(Pattern, {
    "type": "string",
    "description": "`pairs`, `ring`, `incast`, `incast:NODE`, `outcast`, `outcast:NODE`, `all-to-all`, `bisection` or `loop`",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_they_are_written() {
        for word in WORDS {
            let pattern: Pattern = word.parse().unwrap();
            assert_eq!((pattern.to_string().as_str(), pattern.word()), (word, word));
        }
        let incast: Pattern = "incast:[::1]:18600".parse().unwrap();
        let node = Some("[::1]:18600");
        assert_eq!((incast.word(), incast.node()), ("incast", node));
        assert_eq!(incast.to_string().parse(), Ok(incast));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, words) in [
            ("rings", "did you mean `ring`?"),
            ("", "patterns are pairs"),
            ("star", "patterns are pairs"),
            ("ring:node1", "only incast and outcast"),
            ("incast:", "no node after the colon"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
