//! Lists in sentences.

/// `a`, `a and b`, `a, b and c`.
pub fn listed(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&[""; 0]), "");
    }
}
