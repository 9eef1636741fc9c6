//! Findings as text: one line each with the state and what was found; for a problem also why it matters and how to
//! mend it.

use super::examine::{ExaminationEvent, Report};
use super::wrap::{WIDTH, wrapped};
use protocol::finding::{Finding, State};

const STATE_WIDTH: usize = 9;
const LABEL_WIDTH: usize = 20;

/// The lines of an event. With `all_reasons` every finding has its reason.
pub fn lines(event: &ExaminationEvent<'_>, all_reasons: bool) -> String {
    match event {
        ExaminationEvent::Section(text) => format!("\n{}\n", capitalised(text)),
        ExaminationEvent::Finding(finding) => finding_text(finding, all_reasons, WIDTH),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// The lines of a finding, of at most `width` columns.
pub(super) fn finding_text(finding: &Finding, all_reasons: bool, width: usize) -> String {
    let indent = STATE_WIDTH + LABEL_WIDTH + 1;
    let mut text =
        format!("{:<STATE_WIDTH$}{:<LABEL_WIDTH$} ", finding.state.name(), finding.label());
    let overlong = text.chars().count() > indent;
    let needs_mending = matches!(finding.state, State::Warning | State::Broken);
    let mut paragraphs = vec![("", finding.found.as_str())];
    if needs_mending || all_reasons {
        paragraphs.push(("why: ", &finding.why));
    }
    if let Some(remedy) = &finding.remedy {
        paragraphs.push(("try: ", remedy));
    }
    for (number, (head, paragraph)) in paragraphs.iter().enumerate() {
        let head_width = head.chars().count();
        let lines = wrapped(paragraph, width - indent - head_width);
        for (line_number, line) in lines.iter().enumerate() {
            // The first line continues after the label, unless the label is too long.
            if (number, line_number) != (0, 0) || overlong {
                text = text.trim_end().to_owned() + "\n" + &" ".repeat(indent);
            }
            text += &match line_number {
                0 => format!("{head}{line}"),
                _ => format!("{:head_width$}{line}", ""),
            };
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// The last line: the number of findings of each state.
pub fn summary(report: &Report) -> String {
    counted(|state| report.count(state))
}

/// As [`summary`], of the counts of any findings.
pub(super) fn counted(count: impl Fn(State) -> usize) -> String {
    let mut parts = Vec::new();
    for (state, one, many) in [
        (State::Ok, "ok", "ok"),
        (State::Warning, "warning", "warnings"),
        (State::Broken, "broken", "broken"),
        (State::Unknown, "unknown", "unknown"),
    ] {
        match count(state) {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            count => parts.push(format!("{count} {many}")),
        }
    }
    format!("\n{}\n", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_takes_one_line_and_the_rest_says_why() {
        let well = Finding::new("port", State::Ok, "ACTIVE", "it must").of("rxe0:1");
        let line = "ok       port rxe0:1          ACTIVE\n";
        assert_eq!(finding_text(&well, false, WIDTH), line);
        assert!(finding_text(&well, true, WIDTH).ends_with("why: it must\n"));
        let ill = Finding::new(
            "kernel module",
            State::Warning,
            "mlx5_core drives 2 PCI functions, and mlx5_ib is not loaded",
            "the Ethernet driver alone gives no RDMA device, and so on and on until the line is full",
        )
        .of("mlx5_ib")
        .remedy("sudo modprobe mlx5_ib");
        let text = finding_text(&ill, false, WIDTH);
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
