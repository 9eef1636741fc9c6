use std::collections::{BTreeMap, HashSet};

use clap::parser::ValueSource;
use proptest::prelude::*;

use super::*;
use crate::cli::args;
use perftest::OPTIONS;
use results::sample::has;

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

/// In rocebench's words; not what was left out.
fn in_own_words(line: &str) -> Result<String, Failure> {
    let own = translate_options(words(line), &args::command())?;
    Ok(own.words.join(OsStr::new(" ")).into_string().unwrap())
}

fn translated(line: &str) -> String {
    in_own_words(line).unwrap()
}

/// The long options of a command.
fn flags(command: &Command) -> Vec<&str> {
    command.get_arguments().filter_map(Arg::get_long).collect()
}

#[test]
fn letters_and_names_in_every_way_of_writing() {
    for (typed, own) in [
        ("r -u 14 h", "r --timeout=14 h"),
        ("r -u14", "r --timeout=14"),
        ("r -u=14", "r --timeout=14"),
        ("r --qp-timeout 14", "r --timeout=14"),
        ("r --qp-timeout=14", "r --timeout=14"),
        ("r -FN h", "r h"),
        ("r -FNbu14", "r -b --timeout=14"),
        ("r -RFq 4", "r --connect=cm -q 4"),
        ("r -Fq4 -b=false", "r -q4 -b=false"),
        ("r -c RC -e -A FETCH_AND_ADD", "r --poll=event --op=fetch-add"),
        (
            "r --all -W counters/x",
            "r --size=2,4,8,16,32,64,128,256,512,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M",
        ),
        // What clap is to refuse, in the words that were typed.
        ("r -FX9", ""),
        ("r -z --wait_destroy 9", "r"),
        ("r --ipv6-addr --ipv6 -- h", "r --bind=:: -- h"),
        ("r --ipv6 --source_ip fd00::1 h", "r --bind=fd00::1 h"),
        ("r serve --ipv6-addr", "r serve --bind=::"),
        ("r --rate_limit 2.5 -q 4", "r --rate=2500000000b --arrivals=fixed -q 4"),
        (
            "r --rate_limit=8 --rate_units M --rate_limit_type=HW",
            "r --rate=67108864b --pace=device",
        ),
        ("r --rate_units p --rate_limit 900 -- h", "r --rate=900 --arrivals=fixed -- h"),
        ("r --rate_units p h", "r h"),
        ("r --rate_limit x", ""),
        ("r --rate_limit 1 --rate_limit_type PP", ""),
        ("r --rate_limit 1 --rate_units k", ""),
        ("r -Fö9", "r -ö9"),
        ("r --no-such=1 -9", "r --no-such=1 -9"),
        ("r -u", "r --timeout"),
    ] {
        assert_eq!(in_own_words(typed).unwrap_or_default(), own, "{typed}");
    }
}

#[test]
fn values_that_look_like_options_are_values() {
    for (typed, own) in [
        ("r -u -R", "r --timeout=-R"),
        ("r --qp-timeout --all", "r --timeout=--all"),
        ("r -u -- -R", "r --timeout=-- --connect=cm"),
        ("r -q -R", "r -q -R"),
        ("r --qps -R -R", "r --qps -R --connect=cm"),
        ("r --json - -R", "r --json - --connect=cm"),
        ("r --token=-R --verify -R", "r --token=-R --verify --connect=cm"),
        ("r -v -R", "r -v --connect=cm"),
        ("r --knee -R", "r --knee --connect=cm"),
        ("r -F -- -F --all", "r -- -F --all"),
        ("r - -R", "r - --connect=cm"),
    ] {
        assert_eq!(translated(typed), own, "{typed}");
    }
}

#[test]
fn words_that_are_not_utf_8_are_kept_and_can_be_values() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(vec![b'-', b'u', 0xff]);
    let given = [OsString::from("r"), "-u".into(), odd.clone(), odd.clone()];
    let own = translate_options(given, &args::command()).unwrap();
    let mut timeout = OsString::from("--timeout=");
    timeout.push(&odd);
    assert_eq!(own.words, [OsString::from("r"), timeout, odd]);
}

#[test]
fn other_commands_have_no_options_of_perftests() {
    for line in ["r mesh -o 4 -F", "r plot x -o y", "r compare a b -FN"] {
        assert_eq!(translated(line), line);
    }
    // A value is no command.
    assert_eq!(translated("r -d mesh -F"), "r -d mesh");
}

#[test]
fn a_server_leaves_to_its_client_what_the_client_decides() {
    let line = "r serve -a -F -q 4 -u14 --size=2 -R -c RC -d soft0 -x 3 -p 7 --pin_cores 2 --once";
    let translated_line = translate_options(words(line), &args::command()).unwrap();
    let kept = "r serve -d soft0 -x 3 -p 7 --cores=2 --once";
    assert_eq!(translated(line), kept);
    assert_eq!(translated_line.left_out, ["-a", "-q", "-u", "--size", "-R"]);
    let refused = in_own_words("r serve -c XRC").unwrap_err();
    has(refused.text(), ["-c XRC is refused"]);
    // A setting that perftest does not have stays an error of clap's.
    assert_eq!(translated("r serve --qps 4"), "r serve --qps 4");
}

#[test]
fn a_refusal_says_what_to_do() {
    for option in OPTIONS.iter() {
        let (Here::Not(sentence) | Here::Printed(_, &Here::Not(sentence))) = option.here else {
            continue;
        };
        let value = option.value.map_or("", |_| " 1");
        let refused = in_own_words(&format!("r --{}{value}", option.name));
        let text = refused.unwrap_err().text();
        has(&text, [&format!("--{} is refused", option.name)]);
        assert!(text.ends_with(&format!("hint: {sentence}")), "{text}");
    }
    for line in ["r --rdma_cm=1", "r -c", "r -A ADD"] {
        assert!(in_own_words(line).is_err(), "{line}");
    }
}

/// The table's letters and names are either not rocebench's own, or mean the same.
#[test]
fn no_option_means_one_thing_here_and_another_in_perftest() {
    let mut command = args::command();
    command.build();
    for option in OPTIONS.iter() {
        for arg in command.get_arguments().filter(|arg| {
            arg.get_short().is_some_and(|it| option.letter == Some(it))
                || arg
                    .get_long()
                    .is_some_and(|it| it == option.name || option.other_name == Some(it))
        }) {
            let long = arg.get_long().unwrap();
            match option.here {
                Here::Unchanged => assert_eq!(long, option.name),
                here => assert!(matches!(here, Here::Flag(flag) if flag == long), "{option:?}"),
            }
            assert_eq!(needs_value(arg), option.value.is_some(), "{option:?}");
        }
    }
}

#[test]
fn flags_that_the_table_names_exist() {
    let command = args::command();
    let sweep = flags(&command);
    let of_commands: Vec<&str> = command.get_subcommands().flat_map(flags).collect();
    for option in OPTIONS.iter() {
        let sentence = match option.here {
            Here::Flag(flag) | Here::Setting(flag, _) | Here::Prefixed(flag, _) => {
                assert!(sweep.contains(&flag), "{option:?}");
                continue;
            }
            Here::OneOf(meanings, sentence) => {
                for (flag, _) in meanings.iter().filter_map(|(_, meaning)| *meaning) {
                    assert!(sweep.contains(&flag), "{option:?}");
                }
                sentence
            }
            Here::Already(sentence)
            | Here::Not(sentence)
            | Here::Printed(_, &(Here::Already(sentence) | Here::Not(sentence))) => sentence,
            Here::Ipv6 | Here::Unchanged | Here::Rate(_) | Here::Printed(..) => continue,
        };
        for flag in sentence.split([' ', '`', '=']).filter_map(|word| word.strip_prefix("--")) {
            assert!(sweep.contains(&flag) || of_commands.contains(&flag), "{sentence}");
        }
    }
}

/// How an option is written.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// By its letter, together with the letters before it.
    Joined,
    /// By its letter.
    Letter,
    /// By its name, the value after a space.
    Name,
    /// By its name, the value after `=`.
    Equals,
}

/// perftest's way to write options with the values that are given.
fn written(
    options: &[(&PerftestOption, Style)],
    value: impl Fn(&PerftestOption) -> &'static str,
) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_open = false;
    for (option, style) in options {
        let value = option.value.map(|_| value(option));
        let dashed = format!("--{}", option.name);
        match (style, option.letter) {
            (Style::Joined, Some(letter)) => {
                match words.last_mut() {
                    Some(word) if is_open => *word = format!("{word}{letter}"),
                    _ => words.push(format!("-{letter}")),
                }
                if let (Some(word), Some(value)) = (words.last_mut(), value) {
                    word.push_str(value);
                }
            }
            (Style::Letter, Some(letter)) => {
                words.push(format!("-{letter}"));
                words.extend(value.map(str::to_owned));
            }
            (Style::Equals, _) => words.push(match value {
                Some(value) => format!("{dashed}={value}"),
                None => dashed,
            }),
            _ => {
                words.push(dashed);
                words.extend(value.map(str::to_owned));
            }
        }
        is_open = matches!(style, Style::Joined) && option.letter.is_some() && value.is_none();
    }
    words
}

/// What an option is in rocebench's words.
fn own_word(option: &PerftestOption, value: &str) -> Option<String> {
    match option.here {
        Here::Flag(flag) if option.value.is_none() => Some(format!("--{flag}")),
        Here::Flag(flag) => Some(format!("--{flag}={value}")),
        Here::Setting(flag, setting) => Some(format!("--{flag}={setting}")),
        Here::Prefixed(flag, prefix) => Some(format!("--{flag}={prefix}{value}")),
        _ => None,
    }
}

/// A value that each flag takes.
fn sound_value(option: &PerftestOption) -> &'static str {
    match option.here {
        Here::OneOf(meanings, _) => meanings[0].0,
        Here::Flag("mtu") => "1024",
        Here::Flag("bind") => "192.0.2.1",
        _ => "1",
    }
}

/// All that clap reads from a command line.
fn read(words: &[OsString]) -> Result<BTreeMap<String, Vec<OsString>>, clap::Error> {
    let matches = args::command().try_get_matches_from(words)?;
    Ok(matches
        .ids()
        .filter_map(|id| {
            let id = id.as_str();
            let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
            // Groups of options have no values.
            let values =
                matches.try_get_raw(id).ok().flatten().into_iter().flatten().map(OsStr::to_owned);
            is_given.then(|| (id.to_owned(), values.collect()))
        })
        .collect())
}

/// Options that are accepted without a choice between operations, in any order and way of writing, no flag twice.
fn some_options(
    is_meant: fn(&PerftestOption) -> bool,
) -> impl Strategy<Value = Vec<(&'static PerftestOption, Style)>> {
    let accepted: Vec<_> = OPTIONS
        .iter()
        .filter(|it| {
            use Here::{Ipv6, Not, Printed, Rate, Setting, Unchanged};
            !matches!(it.here, Ipv6 | Unchanged | Not(_) | Printed(..) | Rate(_) | Setting("op", _))
        })
        .filter(|it| !matches!(it.here, Here::OneOf(..)) || it.letter == Some('c'))
        .filter(|it| it.letter != Some('T'))
        .filter(|it| it.letter != Some('a') && is_meant(it))
        .collect();
    let count = accepted.len();
    let style = prop_oneof![
        3 => Just(Style::Joined),
        1 => Just(Style::Letter),
        1 => Just(Style::Name),
        1 => Just(Style::Equals),
    ];
    let styles = proptest::collection::vec(style, count);
    let options = proptest::sample::subsequence(accepted, 0..=count).prop_shuffle();
    (options, styles).prop_map(|(options, styles)| {
        // Huge pages and GPUs are one flag here, with several values.
        let mut flags = HashSet::new();
        let apart = options.into_iter().filter(|option| {
            let word = own_word(option, sound_value(option));
            word.is_none_or(|word| flags.insert(word.split('=').next().unwrap().to_owned()))
        });
        apart.zip(styles).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever way perftest's options are written in, clap reads what it reads from rocebench's own flags.
    #[test]
    fn clap_reads_the_same_as_from_own_flags(options in some_options(|_| true)) {
        let typed = written(&options, sound_value);
        let given = std::iter::once("r".into()).chain(typed.iter().map(OsString::from));
        let own = translate_options(given, &args::command()).unwrap();
        let plain = options.iter().filter_map(|(option, _)| own_word(option, sound_value(option)));
        let plain: Vec<OsString> = std::iter::once("r".into()).chain(plain.map(OsString::from)).collect();
        let (got, expected) = (read(&own.words), read(&plain));
        prop_assert_eq!(got.unwrap(), expected.unwrap(), "{:?}", typed);
    }

    /// A value is never taken for an option, nor what follows it for a value.
    #[test]
    fn a_value_stays_whole(
        options in some_options(|it| args::command().get_arguments().all(|arg| {
            it.letter.is_none_or(|letter| arg.get_short() != Some(letter)) && arg.get_long() != Some(it.name)
        })),
        value in proptest::sample::select(vec!["-R", "-FN", "--all", "--", "-", "-u14", "--tclass=8", "mesh", "a=b"]),
    ) {
        let is_free = |it: &PerftestOption| !matches!(it.here, Here::OneOf(..));
        let options: Vec<_> = options.into_iter().filter(|(it, _)| is_free(it)).collect();
        let typed = written(&options, |_| value);
        let given = std::iter::once("r".into()).chain(typed.iter().map(OsString::from));
        let own = translate_options(given, &args::command()).unwrap().words;
        let expected = options.iter().filter_map(|(option, _)| own_word(option, value));
        let expected: Vec<_> = std::iter::once("r".to_owned()).chain(expected).collect();
        prop_assert_eq!(own, expected.iter().map(OsString::from).collect::<Vec<_>>(), "{:?}", typed);
    }

    /// rocebench's own words are left as they are, but for letters that stood together.
    #[test]
    fn own_words_stay(
        lines in proptest::collection::vec(
            proptest::sample::select(vec![
                "-q 4", "--qps 1,2", "--size=4K", "-b", "--verify=false", "--json -", "--token -F", "--knee", "-v",
                "--quiet", "host:7", "--workers 2", "-D 200ms", "--no-latency",
            ]),
            0..8,
        ),
    ) {
        let line = std::iter::once("r").chain(lines).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(translated(&line), line);
    }
}

fn named_in_own_words(line: &str) -> Result<OwnWords, Failure> {
    let words = words(line);
    let (program, rest) = named(&words).unwrap();
    program_in_own_words(program, rest, &args::command())
}

#[test]
fn perftests_command_lines_are_rocebenchs() {
    for (typed, own) in [
        (
            "rocebench ib_send_bw -d mlx5_0 -q 16 -F host",
            "rocebench --op=send --iters=1000 --warmup=auto:1s -d mlx5_0 -q 16 host",
        ),
        (
            "/usr/bin/ib_write_lat host -D 5 -s8",
            "rocebench --op=write --ping-pong --warmup=auto:1s host -D 5 -s8",
        ),
        (
            "ib_read_lat -a host",
            "rocebench --op=read --ping-pong --iters=1000 --warmup=auto:1s host",
        ),
        (
            "ib_send_lat -n 9 host",
            "rocebench --op=send --ping-pong --size=2 --warmup=auto:1s -n 9 host",
        ),
        (
            "ib_atomic_bw -A CMP_AND_SWAP -D1 --warmup=0 host",
            "rocebench --op=compare-swap -D1 --warmup=0 host",
        ),
        ("ib_atomic_bw -D1 host", "rocebench --op=fetch-add --warmup=auto:1s -D1 host"),
        (
            "ib_write_bw --write_with_imm host",
            "rocebench --iters=5000 --warmup=auto:1s --op=write-imm host",
        ),
        ("rocebench ib_send_bw -d mlx5_0 -q 4", "rocebench serve --once -d mlx5_0"),
        ("ib_send_bw --rate_limit 5 --report_gbit", "rocebench serve --once"),
        ("ib_send_bw --help", "rocebench --op=send --iters=1000 --warmup=auto:1s --help"),
    ] {
        let mut translated = named_in_own_words(typed).unwrap().words;
        // `-a` is a long list.
        translated.retain(|word| !word.to_str().unwrap().starts_with("--size=2,"));
        assert_eq!(translated.join(OsStr::new(" ")), own);
    }
    for other in ["rocebench --op send ib_send_bw", "rocebench ib_send_xx"] {
        let words = words(other);
        assert!(named(&words).is_none(), "{other}");
    }
}

#[test]
fn what_a_program_prints_is_as_its_options_say() {
    let form = |line: &str| named_in_own_words(line).map(|own| own.form.unwrap());
    assert_eq!(form("ib_send_bw h").unwrap(), Form::default());
    let server = Form { is_server: true, json: Some(JSON_FILE.into()), ..Form::default() };
    assert_eq!(form("ib_send_bw --out_json").unwrap(), server);
    let rich = Form {
        in_gbits: true,
        without_peak: true,
        with_cpu: true,
        only: Some(Figure::MessageRate),
        json: Some("f".into()),
        least_bandwidth: Some(90.5),
        least_mmsg_per_s: Some(2.0),
        ..Form::default()
    };
    let line = "ib_read_bw -N --report_gbit --cpu_util --output=message_rate --out_json_file=f --out_json -w90.5 -y 2 h";
    assert_eq!(form(line).unwrap(), rich);
    let endless = named_in_own_words("ib_write_bw --run_infinitely h").unwrap();
    assert!(endless.form.unwrap().is_endless);
    assert_eq!(endless.words.len(), 4, "no number of messages");
    for wrong in [
        "ib_send_lat --run_infinitely h",
        "ib_send_bw --output latency h",
        "ib_send_lat --output=bandwidth h",
        "ib_send_bw -w x h",
    ] {
        assert!(form(wrong).is_err(), "{wrong}");
    }
    let without_effect =
        named_in_own_words("ib_send_bw -z --recv_post_list=4 h").unwrap().without_effect;
    assert_eq!(without_effect.len(), 2);
    assert_eq!(translate_options(words("r -N h"), &args::command()).unwrap().form, None);
}
