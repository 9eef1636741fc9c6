use proptest::prelude::*;
use results::sample::has;
use settings::Settings;

use super::*;

/// True outputs of both generations, each behind its command line.
const OLD: &str = include_str!("../../report/tests/perftest/4.5.txt");
const NEW: &str = include_str!("../../report/tests/perftest/6.29.txt");

fn printed_by(command: &str, recorded: &'static str) -> &'static str {
    let mut parts = recorded.split("\n$ ").filter_map(|part| part.split_once('\n'));
    parts.find(|(line, _)| line.starts_with(command)).unwrap().1
}

fn old_bw() -> &'static str {
    printed_by("ib_write_bw", OLD)
}

fn old_lat() -> &'static str {
    printed_by("ib_send_lat -n", OLD)
}

/// Below 0.1 Gb/s: six decimals.
const OLD_SMALL: &str = "\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 64         52400           0.000000            0.013414            0.026200
---------------------------------------------------------------------------------------
";

fn bandwidth(size_bytes: u32, text: &str) -> (f64, f64) {
    match figure(Program::IbSendBw, size_bytes, text).unwrap() {
        Figure::Bandwidth { gbit_per_s, mmsg_per_s } => (gbit_per_s, mmsg_per_s),
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    let refused = figure(Program::IbWriteBw, 65_536, text);
    refused.unwrap_err().to_string()
}

#[test]
fn both_generations_are_read() {
    for (size_bytes, text, expected_gbit_per_s, tolerance, expected_mmsg_per_s) in [
        // The rate has more digits.
        (65_536, old_bw(), 0.028_368 * 524.288, 1e-9, 0.028_368),
        (64, OLD_SMALL, 0.013_414, 1e-6, 0.026_2),
        (65_536, printed_by("ib_write_bw", NEW), 0.035_518 * 524.288, 1e-9, 0.035_518),
    ] {
        let (gbit_per_s, mmsg_per_s) = bandwidth(size_bytes, text);
        assert_eq!(mmsg_per_s, expected_mmsg_per_s);
        assert!((gbit_per_s - expected_gbit_per_s).abs() < tolerance);
    }
    let latency = figure(Program::IbReadLat, 2, old_lat()).unwrap();
    assert_eq!(latency, Figure::Latency { median_ns: 6200.0 });
}

#[test]
fn large_messages_take_the_bandwidths_digits() {
    let text =
        old_bw().replace("65536      56737", "8388608    443").replace("0.028368", "0.000222");
    assert_eq!(bandwidth(8_388_608, &text), (14.87, 0.000_222));
}

#[test]
fn nonsense_is_an_error() {
    assert_eq!(refused(""), "it printed no table");
    let row_only = "65536 17588 0.00 9.22 0.017586";
    assert_eq!(refused(row_only), "it printed no table");
    assert!(refused(&old_bw().replace("Gb/sec", "MiB/sec")).contains("unexpected heading"));
    assert!(refused(old_lat()).contains("unexpected heading"));
    assert_eq!(refused(OLD_SMALL), "its table says a size of 64");
    let (head_only, _) = old_bw().split_once(" 65536").unwrap();
    assert_eq!(refused(head_only), "its table has no row");
    let twice = old_bw().to_owned() + "\n 65536 17588 0.00 9.22 0.017586\n";
    assert!(refused(&twice).contains("2 rows"));
    for (from, to, says) in [
        ("0.028368", "0.000000", "a message rate of 0.000000"),
        ("0.028368", "nan", "a message rate of nan"),
        ("0.028368", "inf", "a message rate of inf"),
        ("0.028368", "-0.028368", "a message rate of -0.028368"),
        ("14.87", "1099.14", "a bandwidth of 1099.14"),
        ("14.87", "-nan", "a bandwidth of -nan"),
        ("56737", "0", "iterations 0"),
        ("0.028368", "", "has no row"),
        ("14.87", "14,87", "has no row"),
    ] {
        has(refused(&old_bw().replace(from, to)), [says]);
    }
    let zero = figure(Program::IbReadLat, 2, &old_lat().replace("6.20", "0.00"));
    assert!(zero.unwrap_err().to_string().contains("0.00"));
}

#[test]
fn peak_deviation_and_maximum_are_never_used() {
    let no_peak = old_bw().replace(" 0.00 ", " nan ");
    assert_eq!(bandwidth(65_536, &no_peak), bandwidth(65_536, old_bw()));
    let no_deviation = old_lat().replace("16.83", "-nan").replace("425.83", "inf");
    let [read, usual] = [&no_deviation, old_lat()].map(|text| figure(Program::IbReadLat, 2, text));
    assert_eq!(read, usual);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(#bytes|[ 0-9.\\n]|\\PC){0,200}", size in 1u32..) {
        for &program in Program::ALL {
            if let Ok(Figure::Bandwidth { gbit_per_s, mmsg_per_s }) = figure(program, size, &text) {
                prop_assert!(gbit_per_s.is_finite() && mmsg_per_s > 0.0);
            }
        }
    }

    #[test]
    fn what_is_printed_is_read_back(
        size in 1u32..=1 << 23,
        rate in 0.001f64..500.0,
        blanks in prop::collection::vec("[ \t]{1,9}", 5),
        new in any::<bool>(),
    ) {
        let gbit = rate * f64::from(size) * 8e-3;
        let average = if gbit < 0.1 { format!("{gbit:.6}") } else { format!("{gbit:.2}") };
        let words = [size.to_string(), "1000".into(), "0.00".into(), average, format!("{rate:.6}")];
        let row: String = blanks.iter().zip(&words).flat_map(|(blank, word)| [blank.as_str(), word]).collect();
        let before = if new { "WARNING\n" } else { "" };
        let text = format!("{before} #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n{row}\n---\n");
        let (read_gbit, read_rate) = bandwidth(size, &text);
        prop_assert!((read_rate - rate).abs() <= 5.1e-7);
        prop_assert!((read_gbit - gbit).abs() <= 0.0051_f64.max(5.1e-7 * f64::from(size) * 8e-3), "{read_gbit} {gbit}");
    }
}

#[test]
fn names_on_the_wire_are_the_files() {
    for &program in Program::ALL {
        let text = serde_json::to_value(program).unwrap();
        assert_eq!(text, program.name());
    }
    assert!(serde_json::from_str::<Program>("\"ib_send_xx\"").is_err());
    assert!(serde_json::from_str::<Program>("\"/bin/sh\"").is_err());
}

#[test]
fn a_ping_pong_is_for_a_latency_program() {
    let mut case = Case::new("send".into(), Settings::from([]));
    case.tx_depth = 1;
    assert_eq!(Program::for_case(&case), Program::IbSendBw);
    case.ping_pong = true;
    assert_eq!(Program::for_case(&case), Program::IbSendLat);
    case.op = Op::Read.into();
    assert_eq!(Program::for_case(&case), Program::IbReadLat);
    case.op = Op::SendImm.into();
    assert_eq!(Program::measuring(&case), None);
}

#[test]
fn only_what_looks_like_a_version_is_one() {
    assert_eq!(version_in("Version: 6.06\n").as_deref(), Some("6.06"));
    let among_others = "x\n Version: 26.01.5 \n";
    assert_eq!(version_in(among_others).as_deref(), Some("26.01.5"));
    let terminal = "Version: \u{1b}[31m";
    for text in ["", "6.06", "Version:", terminal, "Version: a b"] {
        assert_eq!(version_in(text), None, "{text:?}");
    }
}

#[test]
fn an_option_is_in_a_help_as_a_whole_word() {
    let help =
        "      --use_cuda_dmabuf  Use CUDA DMA-BUF\n      --use_cuda=<cuda device id>, --use_rocm";
    for (option, expected) in
        [("--use_cuda", true), ("--use_rocm", true), ("--use_rocm_dmabuf", false)]
    {
        assert_eq!(has_option(help, option), expected, "{option}");
    }
}

#[test]
fn the_variable_wins_then_the_folder_and_what_is_missing_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let debug = folder.path().join("debug");
    std::fs::create_dir(&debug).unwrap();
    let missing = find_in(None, &debug).unwrap_err();
    assert_eq!(missing, LibraryError::Missing(debug.clone()));
    assert!(missing.hint().contains("`cargo build -p softroce-preload`"));
    let lib = folder.path().join(LIBRARY_FOLDER);
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join(LIBRARY_FILE), "").unwrap();
    assert_eq!(find_in(None, &debug), Ok(lib.join(LIBRARY_FILE)));
    let beside = debug.join(LIBRARY_FILE);
    std::fs::write(&beside, "").unwrap();
    assert_eq!(find_in(None, &debug), Ok(beside.clone()));
    assert_eq!(find_in(Some("".into()), &debug), Ok(beside));
    let named = folder.path().join("mine.so");
    let absent = find_in(Some(named.clone().into()), &debug).unwrap_err();
    assert_eq!(absent, LibraryError::NoSuchFile(named.clone()));
    std::fs::write(&named, "").unwrap();
    let named = named.canonicalize().unwrap();
    assert_eq!(find_in(Some(named.clone().into()), &debug), Ok(named));
    let spaced = folder.path().join("a b.so");
    std::fs::write(&spaced, "").unwrap();
    let refused = find_in(Some(spaced.into()), &debug);
    assert!(matches!(refused, Err(LibraryError::Separator(_))));
}
