//! perftest's options as a person types them. Needs perftest's programs (`scripts/setup --tests`).

use std::collections::BTreeSet;
use std::process::Command;

use perftest::PerftestOption;
use testing::process::Call;

/// Each with its suffix for bandwidth and for latency.
const PROGRAMS: [&str; 4] = ["ib_send", "ib_write", "ib_read", "ib_atomic"];

/// The options of a line of perftest's help: `-a, --all  Run sizes …`; `--connection=<…>` without its value.
fn options(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
        .take_while(|word| word.starts_with('-'))
        .filter_map(|word| word.split([',', '=']).next())
}

fn is_known(option: &str) -> bool {
    let name = option.strip_prefix("--");
    name.map_or_else(|| PerftestOption::of_letter(option.chars().nth(1)?), PerftestOption::of_name)
        .is_some()
}

#[test]
fn every_option_of_the_installed_programs_is_known() {
    // `scripts/setup --tests` installs perftest.
    for name in PROGRAMS.map(|name| ["bw", "lat"].map(|suffix| format!("{name}_{suffix}"))).concat()
    {
        let help = Call::new(Command::new(&name), "--help").run().stdout;
        let found: BTreeSet<&str> = help.lines().flat_map(options).collect();
        assert!(found.len() > 50, "{name} has {found:?}");
        let unknown: Vec<_> = found.iter().filter(|option| !is_known(option)).collect();
        assert!(unknown.is_empty(), "{name} has {unknown:?}");
    }
}
