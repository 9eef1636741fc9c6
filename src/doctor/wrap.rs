//! Breaks text into lines at spaces.

/// Columns of a line of a report about one machine.
pub(super) const WIDTH: usize = 100;

/// Lines of at most `width` characters; a longer word gets its own line.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        let taken = line.chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if taken > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("µµµ µµµ", 7), ["µµµ µµµ"]);
        assert_eq!(wrapped("much-too-long a", 4), ["much-too-long", "a"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
