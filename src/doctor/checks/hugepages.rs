//! Checks huge pages, which the buffers of a run use if the kernel provides them.

use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str = "an adapter caches few page translations: buffers in pages of 2 MiB instead of 4 KiB need fewer, \
                   which helps with many QPs and large messages";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let mode = machine
        .text("sys/kernel/mm/transparent_hugepage/enabled")
        .and_then(|text| chosen(&text).map(str::to_owned));
    let reserved = machine.text("proc/meminfo").and_then(|text| reserved(&text)).unwrap_or(0);
    let reserved = format!("{reserved} reserved");
    vec![match mode.as_deref() {
        Some("always") => {
            finding(State::Ok, format!("every large buffer gets transparent ones; {reserved}"))
        }
        Some(mode) if subject.has_adapters() => finding(
            State::Warning,
            format!("transparent ones are set to {mode}, so buffers get none; {reserved}"),
        )
        .remedy("echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        Some(mode) => finding(
            State::Ok,
            format!(
                "transparent ones are set to {mode}, which matters only with an adapter; {reserved}"
            ),
        ),
        None => finding(State::Ok, format!("the kernel has no transparent ones; {reserved}")),
    }]
}

fn finding(state: State, found: String) -> Finding {
    Finding::new("huge pages", state, found, WHY)
}

/// `madvise` of `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

fn reserved(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Total:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn the_mode_in_brackets_counts() {
        let mode = "sys/kernel/mm/transparent_hugepage/enabled";
        let reserved = "MemTotal: 1 kB\nHugePages_Total:     12\n";
        let files = [(mode, "always [madvise] never\n"), ("proc/meminfo", reserved)];
        let tree = tree();
        tree.add("", &files);
        let found = &findings(&tree, check)[0];
        assert_eq!(found.state, State::Warning);
        assert!(found.found.ends_with("12 reserved"), "{found:?}");
        assert_eq!(findings(&Tree::new(&files), check)[0].state, State::Ok);
        assert_eq!(chosen("[always] madvise never"), Some("always"));
    }
}
