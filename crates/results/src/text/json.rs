//! JSON documents of others, with every text in them made printable before they are parsed. It knows of JSON no more
//! than where a string begins and ends; whether the document is one is the parser's business.

use std::borrow::Cow;

use super::shown::{MAX_CHARS, is_shown, printable, printable_lines};

/// The most characters of a text of many lines.
const MAX_CHARS_OF_LINES: usize = 1 << 18;

/// What a string in a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A text of one line, for people; so is every key.
    Line,
    Lines,
    /// Data, never shown as it is.
    Data,
}

impl Kind {
    /// By the key that it is the value of, quotes included. A key that is written with escapes is none of these.
    fn of_value(key: &[u8]) -> Kind {
        match key {
            b"\"output\"" => Kind::Lines,
            // Distributions and counts in base64; a name that a file is to have; a message's payload.
            b"\"histogram\""
            | b"\"histogram_kbit_per_s\""
            | b"\"packed\""
            | b"\"file_name\""
            | b"\"offered\"" => Kind::Data,
            _ => Kind::Line,
        }
    }
}

/// The document with its strings, keys included, as [`printable`] shows them, at most [`MAX_CHARS`] of each. Left as
/// they are: data (`histogram`, `histogram_kbit_per_s`, `packed`, `file_name`, `offered`) and the line ends of what a program printed (`output`).
pub fn cleaned(document: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let (mut copied, mut at) = (0, 0);
    // The key before, and where its value begins.
    let (mut key, mut value_at): (&[u8], usize) = (b"", 0);
    while let Some(string) = next_string(document, at) {
        at = string.end;
        let token = &document[string.clone()];
        let colon_at = skip_blanks(document, at);
        let is_key = document.get(colon_at) == Some(&b':');
        let kind =
            if is_key || string.start != value_at { Kind::Line } else { Kind::of_value(key) };
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
fn next_string(document: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
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
fn cleaned_string(token: &[u8], kind: Kind) -> Option<Vec<u8>> {
    if kind == Kind::Data
        || token.len() <= MAX_CHARS
            && token.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\')
    {
        return None;
    }
    let text: String = serde_json::from_slice(token).ok()?;
    let clean = match kind {
        Kind::Lines => printable_lines(&text, MAX_CHARS_OF_LINES),
        _ if text.len() <= MAX_CHARS && text.chars().all(is_shown) => return None,
        _ => printable(&text, MAX_CHARS),
    };
    serde_json::to_vec(&clean).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn cleaned_value(document: &str) -> Value {
        serde_json::from_slice(&cleaned(document.as_bytes())).unwrap()
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
        let clean = String::from_utf8(cleaned(document.as_bytes()).into_owned()).unwrap();
        assert_eq!(clean.matches("\"\\u001b\"").count(), 1, "{clean}");
        assert_eq!(clean.matches("\"\\\\u{1b}\"").count(), 4, "{clean}");
    }

    #[test]
    fn what_is_clean_or_no_json_is_not_copied() {
        let whole = r#"{"a": "b", "c": [1, 2.5e3, "µs"], "d": null}"#;
        let broken =
            ["", "\"", "\"abc", "\"abc\\", "\"abc\\\"", "\"\\ud800\"", "\"a\nb\"", "\u{1b}"];
        for document in broken.into_iter().chain([whole]) {
            let clean = cleaned(document.as_bytes());
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
        let line = |text: &str| printable(text, MAX_CHARS);
        match value {
            Value::String(text) => line(text).into(),
            Value::Array(items) => items.iter().map(expected).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (line(key), expected(value))).collect()
            }
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
            let _ = cleaned(&bytes);
            let quoted = [b"\"", bytes.as_slice(), b"\""].concat();
            let _ = cleaned(&quoted);
        }
    }
}
