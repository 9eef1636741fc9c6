//! The known word that a mistyped one most likely meant. It knows words only.

/// The candidate nearest to `word`, if any is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    candidates
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&word, candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_none() {
        let known = ["qps", "size", "tx-depth", "rx-depth"];
        assert_eq!(nearest("qp", &known), Some("qps"));
        assert_eq!(nearest("tx_depth", &known), Some("tx-depth"));
        assert_eq!(nearest("sizes", &known), Some("size"));
        assert_eq!(nearest("zzz", &known), None);
    }
}
