//! The texts, apart from the code that uses them. A text may have placeholders such as `{name}`.

mod en;
mod keys;
mod zh;

pub use keys::Key;

/// A language of the lessons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    En,
    Zh,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::En, Language::Zh];

    pub fn text(self, key: Key) -> &'static str {
        match self {
            Language::En => en::text(key),
            Language::Zh => zh::text(key),
        }
    }

    /// The text with its placeholders filled in.
    pub fn filled(self, key: Key, values: &[(&str, &str)]) -> String {
        let mut text = self.text(key).to_owned();
        for (name, value) in values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    /// Options, functions, states and errors have the same names in both languages; a translation may omit one.
    fn things(text: &str) -> BTreeSet<&str> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))
            .filter(|word| word.contains('_') || word.starts_with("--") && word.len() > 2)
            .collect()
    }

    #[test]
    fn both_languages_have_the_same_places_and_name_the_same_things() {
        for key in Key::ALL {
            let (en, zh) = (Language::En.text(*key), Language::Zh.text(*key));
            assert!(!en.is_empty() && !zh.is_empty(), "{key:?}");
            assert_eq!(places(en), places(zh), "{key:?}");
            assert_eq!(things(en), things(zh), "{key:?}");
        }
    }

    #[test]
    fn chinese_is_chinese() {
        for key in Key::ALL {
            let [en, zh] = [Language::En, Language::Zh].map(|language| language.text(*key));
            let is_chinese = |c| ('\u{4e00}'..='\u{9fff}').contains(&c);
            assert!(zh.chars().any(is_chinese), "{key:?}: {zh}");
            // Half-width punctuation is wrong in Chinese text.
            for wrong in [", ", "; ", "? ", "! "] {
                assert!(!zh.contains(wrong), "{key:?}: {zh}");
            }
            assert!(!en.chars().any(|c| c >= '\u{3000}'), "{key:?}");
        }
    }
}
