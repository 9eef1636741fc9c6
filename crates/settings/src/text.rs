//! Settings as text: conversions for files and the wire, lists in sentences, and the known word that a mistyped one most
//! likely meant.

/// Conversions of a type from and to text, and its schema, which is that of `json_schema!`.
macro_rules! as_text {
    ($type:ident, $schema:tt) => {
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = <$type as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use as_text;

/// `a`, `a and b`, `a, b and c`.
pub fn listed(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let names: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", names.join(", "), last.as_ref())
        }
    }
}

/// The candidate nearest to `word`, if any is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let normalised = word.to_ascii_lowercase().replace('_', "-");
    candidates
        .iter()
        .filter(|candidate| is_near(&normalised, candidate))
        .map(|candidate| (strsim::jaro_winkler(&normalised, candidate), *candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Whether a person may have meant `known` and slipped: of three letters one was left out, added, changed or swapped with the
/// next, of six two, or the end of the word is missing.
pub fn is_near(word: &str, known: &str) -> bool {
    let slips = (known.chars().count() / 3).max(1);
    let is_beginning = word.chars().count() >= 3 && known.starts_with(word);
    is_beginning || strsim::damerau_levenshtein(word, known) <= slips
}

#[cfg(test)]
mod tests {
    use super::{is_near, nearest, *};

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&[""; 0]), "");
    }

    #[test]
    fn a_word_of_other_letters_is_not_near() {
        let pairs = |text: &'static str| text.split(' ').filter_map(|pair| pair.split_once('='));
        for (word, known) in pairs("formt=port list=size host=port a=qps") {
            assert!(!is_near(word, known), "{word} {known}");
        }
        let near = "plto=plot sevre=serve comp=compare dev=devices";
        for (word, known) in pairs(near) {
            assert!(is_near(word, known), "{word} {known}");
        }
    }

    #[test]
    fn a_slip_finds_its_word_and_nonsense_none() {
        let known = ["qps", "size", "tx-depth", "rx-depth"];
        assert_eq!(nearest("qp", &known), Some("qps"));
        assert_eq!(nearest("tx_depth", &known), Some("tx-depth"));
        assert_eq!(nearest("sizes", &known), Some("size"));
        assert_eq!(nearest("zzz", &known), None);
    }
}
