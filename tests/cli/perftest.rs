//! perftest's options as a person types them. Needs perftest's programs (`scripts/setup --tests`).

use std::collections::BTreeSet;
use std::process::Command;

use rocebench::perftest::PerftestOption;

use crate::{Ran, run};

const PROGRAMS: [&str; 8] = [
    "ib_send_bw",
    "ib_send_lat",
    "ib_write_bw",
    "ib_write_lat",
    "ib_read_bw",
    "ib_read_lat",
    "ib_atomic_bw",
    "ib_atomic_lat",
];

/// The options of a line of perftest's help: `-a, --all  Run sizes …`; `--connection=<…>` without its value.
fn options(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split_whitespace();
    let words = words.take_while(|word| word.starts_with('-'));
    words.filter_map(|word| word.split([',', '=']).next())
}

fn is_known(option: &str) -> bool {
    let letter = || PerftestOption::of_letter(option.chars().nth(1)?);
    let name = option.strip_prefix("--");
    name.map_or_else(letter, PerftestOption::of_name).is_some()
}

#[test]
fn every_option_of_the_installed_programs_is_known() {
    // `scripts/setup --tests` installs perftest.
    for name in PROGRAMS {
        let help = Ran::of(Command::new(name).arg("--help")).out;
        let found: BTreeSet<&str> = help.lines().flat_map(options).collect();
        assert!(found.len() > 50, "{name} has {found:?}");
        let unknown: Vec<_> = found.iter().filter(|option| !is_known(option)).collect();
        assert!(unknown.is_empty(), "{name} has {unknown:?}");
    }
}

#[test]
fn a_sweep_in_perftests_words_is_that_in_rocebenchs() {
    let cases = |line: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--dry-run", "host"]).collect();
        let ran = run(&words).ends(0);
        assert_eq!(ran.err, "", "{line}");
        ran.out
    };
    for (typed, own) in [
        (
            "-F -d mlx5_0 -x 3 -q 4 -s 65536 -D 10 --report_gbits -u 18 -S 3 --tclass=104",
            "-d mlx5_0 -x 3 -q 4 -s 64K -D 10s --timeout 18 --service-level 3 --traffic-class 104",
        ),
        (
            "-aFNbRe -c RC --qp=2 --cq-mod 1 --post_list=1 -n 1000 -L 9",
            "-b --connect cm --poll event -q 2 -Q 1 -l 1 -n 1000 --hop-limit 9 -s 2,4,8,16,32,64,128,256,512,1K,2K,4K,\
             8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M",
        ),
        ("--op read -o 16 -I0", "--op read --max-rd-atomic 16 -I 0"),
    ] {
        assert_eq!(cases(typed), cases(own), "{typed}");
    }
}
