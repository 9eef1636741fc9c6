//! Text as it is shown: what a terminal would obey, hide or reorder is written out.

use std::fmt::Write as _;
use std::path::Path;

/// The most characters of one text that are shown, unless a place has room for fewer.
pub const MAX_CHARS: usize = 500;

/// `text` in one line: what a terminal would obey, hide or reorder is written as an escape (`\n`, `\u{1b}`,
/// `\u{202e}`), and what is longer than `max_chars` ends in `…`.
pub fn printable(text: &str, max_chars: usize) -> String {
    escaped(text, max_chars, is_shown)
}

/// A path's text: whoever made the file chose its name.
pub fn path(path: &Path) -> String {
    printable(&path.to_string_lossy(), MAX_CHARS)
}

/// The last two parts of a path: enough to tell a file from its neighbours, and short enough for a title.
pub fn short_path(path: &str) -> &str {
    let second = path.rmatch_indices('/').nth(1);
    second.map_or(path, |(at, _)| &path[at + 1..])
}

/// As [`printable`], and lines and tabs stay.
pub fn printable_lines(text: &str, max_chars: usize) -> String {
    escaped(text, max_chars, |char| matches!(char, '\n' | '\t') || is_shown(char))
}

fn escaped(text: &str, max_chars: usize, is_kept: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len().min(max_chars));
    let mut chars = text.chars();
    for char in chars.by_ref().take(max_chars) {
        if is_kept(char) {
            out.push(char);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", char.escape_debug());
        }
    }
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Whether a character stands for itself: no control character, no format character (they turn the direction of text,
/// or have no width), nothing unassigned or private, no separator but the blank.
pub(super) fn is_shown(char: char) -> bool {
    // Of those that do, only these three have an escape of their own in a literal.
    matches!(char, '\\' | '\'' | '"') || char.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_path_has_two_parts() {
        for (path, short) in [("/a/b/c.json", "b/c.json"), ("b/c", "b/c"), ("c", "c"), ("", "")] {
            assert_eq!(short_path(path), short);
        }
    }

    #[test]
    fn what_would_drive_a_terminal_is_shown_as_what_it_is() {
        for (text, shown) in [
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("a\nerror: forged\r\t", "a\\nerror: forged\\r\\t"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("\u{202e}gnp.exe\u{2066}", "\\u{202e}gnp.exe\\u{2066}"),
            ("a\u{200b}b\u{feff}\u{e0041}", "a\\u{200b}b\\u{feff}\\u{e0041}"),
            ("\u{2028}", "\\u{2028}"),
            ("\0", "\\0"),
        ] {
            assert_eq!(printable(text, 100), shown);
        }
    }

    #[test]
    fn what_people_write_stays() {
        for text in
            ["C:\\new \"x\" it's", "Übergröße 4 µs × 2 → 3 …", "队列对", "Debian GNU/Linux 12"]
        {
            assert_eq!(printable(text, 100), text);
        }
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        assert_eq!(printable("äöü", 2), "äö…");
        assert_eq!(printable("äö", 2), "äö");
        assert_eq!(path(Path::new("r\u{1b}.json")), "r\\u{1b}.json");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_is_not_shown(text in any::<String>(), max in 0usize..50) {
            let shown = printable(&text, max);
            prop_assert!(shown.chars().all(|char| is_shown(char) && !char.is_control()));
            // An escape has ten characters at most: `\u{10ffff}`.
            prop_assert!(shown.chars().count() <= max * 10 + 1);
            prop_assert_eq!(printable(&shown, usize::MAX), shown.as_str());
        }
    }
}
