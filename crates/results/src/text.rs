//! Text that somebody else wrote (a peer, a file, another program), made fit for a terminal, a log and a page; and how
//! text is broken into lines and coloured.
//!
//! Documents are cleaned as a whole where they come in ([`cleaned_json`]), so that what is printed later needs no
//! thought. Other text is cleaned by [`printable`] where it is put into words.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
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

/// What names are sorted by, as people do: runs of digits by their number, so that node2 comes before node10.
pub fn natural(name: &str) -> (Vec<(usize, &str)>, &str) {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (part, after) = rest.split_at(digits.max(first.len_utf8()));
        let number = part.trim_start_matches('0');
        parts.push(match digits {
            0 => (0, part),
            // The longer number is larger.
            _ => (1 + number.len(), number),
        });
        rest = after;
    }
    (parts, name)
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
fn is_shown(char: char) -> bool {
    // Of those that do, only these three have an escape of their own in a literal.
    matches!(char, '\\' | '\'' | '"') || char.escape_debug().len() == 1
}

/// The most characters of a text of many lines.
const MAX_CHARS_OF_LINES: usize = 1 << 18;

/// What a string in a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringKind {
    /// A text of one line, for people; so is every key.
    Line,
    Lines,
    /// Data, never shown as it is.
    Data,
}

impl StringKind {
    /// By the key that it is the value of, quotes included. A key that is written with escapes is none of these.
    fn of_value(key: &[u8]) -> StringKind {
        match key {
            b"\"output\"" => StringKind::Lines,
            // Distributions and counts in base64; a name that a file is to have; a message's payload.
            b"\"histogram\""
            | b"\"histogram_kbit_per_s\""
            | b"\"packed\""
            | b"\"file_name\""
            | b"\"offered\"" => StringKind::Data,
            _ => StringKind::Line,
        }
    }
}

/// The document with its strings, keys included, as [`printable`] shows them, at most [`MAX_CHARS`] of each. Left as
/// they are: data (`histogram`, `histogram_kbit_per_s`, `packed`, `file_name`, `offered`) and the line ends of what a
/// program printed (`output`). It knows of JSON no more than where a string begins and ends; whether the document is one
/// is the parser's business.
pub fn cleaned_json(document: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let (mut copied, mut at) = (0, 0);
    // The key before, and where its value begins.
    let (mut key, mut value_at): (&[u8], usize) = (b"", 0);
    while let Some(string) = next_string(document, at) {
        at = string.end;
        let token = &document[string.clone()];
        let colon_at = skip_blanks(document, at);
        let is_key = document.get(colon_at) == Some(&b':');
        let kind = if is_key || string.start != value_at {
            StringKind::Line
        } else {
            StringKind::of_value(key)
        };
        if let Some(clean) = cleaned_string(token, kind) {
            out.extend_from_slice(&document[copied..string.start]);
            out.extend_from_slice(&clean);
            copied = at;
        }
        if is_key {
            (key, value_at) = (token, skip_blanks(document, colon_at + 1));
        }
    }
    if copied == 0 {
        return Cow::Borrowed(document);
    }
    out.extend_from_slice(&document[copied..]);
    Cow::Owned(out)
}

/// The first place from `at` on without white space.
fn skip_blanks(document: &[u8], at: usize) -> usize {
    let blanks = document[at..].iter().take_while(|byte| byte.is_ascii_whitespace());
    at + blanks.count()
}

/// The next string from `at` on, quotes included; `None` if there is none, or it does not end.
fn next_string(document: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + document[at..].iter().position(|byte| *byte == b'"')?;
    let mut end = start + 1;
    loop {
        end += document.get(end..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if document[end] == b'"' {
            return Some(start..end + 1);
        }
        end += 2;
    }
}

/// The string anew; `None` where it may stay as it is, or is none, which the parser will say.
fn cleaned_string(token: &[u8], kind: StringKind) -> Option<Vec<u8>> {
    if kind == StringKind::Data
        || token.len() <= MAX_CHARS
            && token.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\')
    {
        return None;
    }
    let text: String = serde_json::from_slice(token).ok()?;
    let clean = match kind {
        StringKind::Lines => printable_lines(&text, MAX_CHARS_OF_LINES),
        _ if text.len() <= MAX_CHARS && text.chars().all(is_shown) => return None,
        _ => printable(&text, MAX_CHARS),
    };
    serde_json::to_vec(&clean).ok()
}

/// A line that is broken between words, so that each has fewer characters than `columns`. What follows the first line is indented by two
/// more than it. A word that is longer alone stays whole.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    if text.chars().count() < columns {
        return vec![text.replace(NO_BREAK, " ")];
    }
    let start = text.len() - text.trim_start().len();
    let (mut lines, mut line) = (Vec::new(), " ".repeat(start));
    let mut width = start;
    for part in unbroken(text)
        .split(|c: char| c.is_whitespace() && c != NO_BREAK)
        .filter(|part| !part.is_empty())
    {
        let word = part.replace(NO_BREAK, " ");
        let chars = word.chars().count();
        if width + chars >= columns && !line.trim().is_empty() {
            lines.push(line.trim_end().to_owned());
            width = start + 2;
            line = " ".repeat(width);
        }
        line += &word;
        line.push(' ');
        width += chars + 1;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// A blank at which no line is broken.
const NO_BREAK: char = '\u{a0}';

/// The text with blanks before `%` at which no line is broken.
pub fn unbroken(text: &str) -> String {
    text.replace(" %", &format!("{NO_BREAK}%"))
}

/// Seconds to the nanosecond, without zeros at the end: `0.3 s`, not `0.30000000000000004 s`.
pub fn seconds_text(seconds: f64) -> String {
    let text = format!("{seconds:.9}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A terminal, or what takes text in place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Characters of a line that fit.
    pub columns: usize,
    /// Whether it takes escape sequences for colours.
    pub is_coloured: bool,
}

/// What a reader is to see at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Plain,
    Good,
    /// Something that makes figures doubtful.
    Doubtful,
    Bad,
}

impl Screen {
    /// A file or a pipe: lines of any width, no colours.
    pub const ENDLESS: Screen = Screen { columns: usize::MAX, is_coloured: false };

    /// The text in the colour of its mark, where there are colours.
    pub fn painted(self, mark: Mark, text: &str) -> String {
        let code = match mark {
            Mark::Good => "32",
            Mark::Doubtful => "33",
            Mark::Bad => "1;31",
            Mark::Plain => "",
        };
        if self.is_coloured && !code.is_empty() && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

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

    fn cleaned_value(document: &str) -> Value {
        serde_json::from_slice(&cleaned_json(document.as_bytes())).unwrap()
    }

    #[test]
    fn strings_and_keys_are_cleaned_wherever_they_are() {
        let document = r#"{"id": "a\u001b[2J", "k\ney": ["\u202ex", {"b": 1, "c": "d\\e \"f\""}]}"#;
        let expected =
            json!({ "id": "a\\u{1b}[2J", "k\\ney": ["\\u{202e}x", { "b": 1, "c": "d\\e \"f\"" }] });
        assert_eq!(cleaned_value(document), expected);
        let raw = "{\"id\": \"\u{9b}2J\u{7f}\"}";
        assert_eq!(cleaned_value(raw), json!({ "id": "\\u{9b}2J\\u{7f}" }));
    }

    #[test]
    fn long_texts_are_cut_and_data_and_output_are_not() {
        let long = "x".repeat(1 << 20);
        let document = json!({
            "id": long, "histogram": long, "histogram_kbit_per_s": long, "file_name": "a\u{202e}b", "offered": "\u{1b}",
            "output": "one\ntwo\t\u{1b}[31mthree\n"
        });
        let clean = cleaned_value(&document.to_string());
        assert_eq!(clean["id"].as_str().unwrap().chars().count(), MAX_CHARS + 1);
        assert_eq!(clean["output"], "one\ntwo\t\\u{1b}[31mthree\n");
        for name in ["histogram", "histogram_kbit_per_s", "file_name", "offered"] {
            assert_eq!(clean[name], document[name], "{name}");
        }
    }

    #[test]
    fn only_a_value_right_after_its_key_is_data() {
        let document = r#"{"histogram" :
            "\u001b", "a": {"histogram": ["\u001b", "\u001b"]}, "b": ["histogram", "\u001b"], "histo\u0067ram": "\u001b"}"#;
        let clean = String::from_utf8(cleaned_json(document.as_bytes()).into_owned()).unwrap();
        assert_eq!(clean.matches("\"\\u001b\"").count(), 1, "{clean}");
        assert_eq!(clean.matches("\"\\\\u{1b}\"").count(), 4, "{clean}");
    }

    #[test]
    fn what_is_clean_or_no_json_is_not_copied() {
        let whole = r#"{"a": "b", "c": [1, 2.5e3, "µs"], "d": null}"#;
        let broken =
            ["", "\"", "\"abc", "\"abc\\", "\"abc\\\"", "\"\\ud800\"", "\"a\nb\"", "\u{1b}"];
        for document in broken.into_iter().chain([whole]) {
            let clean = cleaned_json(document.as_bytes());
            assert!(matches!(clean, Cow::Borrowed(_)), "{document}");
            assert_eq!(clean, document.as_bytes());
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), ".{0,9}".prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,9}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn expected(value: &Value) -> Value {
        match value {
            Value::String(text) => printable(text, MAX_CHARS).into(),
            Value::Array(items) => items.iter().map(expected).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, field)| (printable(key, MAX_CHARS), expected(field)))
                .collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn only_strings_are_changed(value in any_json(), pretty in any::<bool>()) {
            let document = if pretty { format!("{value:#}") } else { value.to_string() };
            prop_assert_eq!(cleaned_value(&document), expected(&value));
        }

        #[test]
        fn any_bytes_are_taken(bytes in any::<Vec<u8>>()) {
            let _ = cleaned_json(&bytes);
            let quoted = [b"\"", bytes.as_slice(), b"\""].concat();
            let _ = cleaned_json(&quoted);
        }
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("  a bc defg", 7), ["  a bc", "    defg"]);
        assert_eq!(wrapped("  a bc def", 6), ["  a", "    bc", "    def"]);
        assert_eq!(wrapped("µµ µµ", 6), ["µµ µµ"]);
        assert_eq!(wrapped("overlong b", 3), ["overlong", "  b"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("gains 9 % more", 9), ["gains", "  9 %", "  more"]);
        assert_eq!(wrapped("a 9\u{a0}µs b", 6), ["a", "  9 µs", "  b"]);
    }

    #[test]
    fn seconds_end_where_their_digits_do() {
        for (seconds, text) in [
            (0.1 + 0.2, "0.3 s"),
            (300_000_000.0 * 1e-9, "0.3 s"),
            (1.0, "1 s"),
            (100.0, "100 s"),
            (0.0, "0 s"),
            (2.5, "2.5 s"),
            (0.000_000_001, "0.000000001 s"),
        ] {
            assert_eq!(seconds_text(seconds), text);
        }
    }

    #[test]
    fn colours_are_for_those_who_take_them() {
        let coloured = Screen { is_coloured: true, ..Screen::ENDLESS };
        let bad = "\x1b[1;31mfailed\x1b[0m";
        assert_eq!(coloured.painted(Mark::Bad, "failed"), bad);
        assert_eq!(coloured.painted(Mark::Plain, "x"), "x");
        assert_eq!(coloured.painted(Mark::Good, ""), "");
        assert_eq!(Screen::ENDLESS.painted(Mark::Bad, "failed"), "failed");
    }
}
