//! What tests share: texts, and settings in few words.

/// The text has all of these words.
#[track_caller]
pub(crate) fn has<const N: usize>(text: impl AsRef<str>, words: [&str; N]) {
    let text = text.as_ref();
    for words in words {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

/// The text starts with these words.
#[track_caller]
pub(crate) fn starts(text: impl AsRef<str>, words: &str) {
    let text = text.as_ref();
    assert!(text.starts_with(words), "no `{words}` before: {text}");
}

/// Settings that are written as `qps=4 op=write`.
pub(crate) fn asked<'a, T: FromIterator<(&'a str, &'a str)>>(flags: &'a str) -> T {
    flags.split(' ').filter_map(|it| it.split_once('=')).collect()
}
