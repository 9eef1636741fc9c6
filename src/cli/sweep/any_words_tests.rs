//! Whatever is typed is a plan or a refusal with its reason.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use clap::FromArgMatches as _;
use proptest::prelude::*;

use crate::cli::perftest_words::translate_options;
use crate::cli::sweep::plan::{DefaultNodes, RunPlan};
use crate::cli::{Cli, args};

/// Values of flags, good and bad ones.
const VALUES: &str = "0 1 4 -1 1,4,16 1,1 1.. ..4 1..4 4..1 64 64K 1G 64:9,64K:1 18446744073709551616 1e308 -0 NaN inf 0x10 \
                      1ms 500ms 0s 99999999999h 30% 100.1% 1G/s p99<10us p50<0 x X= =x @x a->b a->a n[1-4] n[1-999999] [::1] \
                      fe80::1%lo : :1 h:99999 send read write send,write per-qp shared none - -- --";

fn words() -> impl Strategy<Value = Vec<OsString>> {
    let command = args::command();
    let of_sweep = command.get_arguments();
    let of_others = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let mut flags: Vec<String> = of_sweep
        .chain(of_others)
        .flat_map(|it| {
            let long = it.get_long().map(|long| format!("--{long}"));
            let short = it.get_short().map(|short| format!("-{short}"));
            long.into_iter().chain(short)
        })
        .collect();
    flags.extend(command.get_subcommands().map(|it| it.get_name().to_owned()));
    let values: Vec<&str> = VALUES.split_whitespace().collect();
    let value = prop_oneof![
        8 => prop::sample::select(values).prop_map(OsString::from),
        1 => ".{0,12}".prop_map(OsString::from),
        1 => prop::collection::vec(any::<u8>(), 0..12).prop_map(OsString::from_vec),
    ];
    let flag = prop::sample::select(flags).prop_map(OsString::from);
    let word = prop_oneof![
        2 => flag.clone().prop_map(|flag| vec![flag]),
        5 => (flag.clone(), value.clone()).prop_map(|(flag, value)| vec![flag, value]),
        2 => (flag, value.clone()).prop_map(|(mut flag, value)| {
            flag.push("=");
            flag.push(value);
            vec![flag]
        }),
        1 => value.prop_map(|value| vec![value]),
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_typed_is_a_plan_or_is_refused(words in words()) {
        let command = args::command();
        let line = std::iter::once(OsString::from("rocebench")).chain(words);
        let Ok(own) = translate_options(line, &command) else {
            return Ok(());
        };
        let Ok(matches) = command.try_get_matches_from(own.words) else {
            return Ok(());
        };
        let cli = Cli::from_arg_matches(&matches);
        if let Ok(Cli { command: None, run }) = cli
            && let Err(refused) = RunPlan::new(run, &DefaultNodes::TwoEnds)
        {
            prop_assert!(refused.text().starts_with("rocebench: error: "));
        }
    }
}
