//! Text broken into lines of a terminal.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
