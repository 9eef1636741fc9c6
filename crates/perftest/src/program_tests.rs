use proptest::prelude::*;
use results::sample::has;
use settings::Settings;

use super::*;

/// Of 4.5 (6.06), Debian 12: shortened above the table.
const OLD_BW: &str = "\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : soft0
 Number of qps   : 1\t\tTransport type : IB
 CQ Moderation   : 1
 Mtu             : 4096[B]
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x670011 PSN 0x530a8f RKey 0x000171 VAddr 0x007fecd4dfa000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:127:00:00:03
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      17588            0.00               9.22   \t\t   0.017586
---------------------------------------------------------------------------------------
";

/// The same below 0.1 Gb/s: six decimals.
const OLD_SMALL: &str = "\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 64         52400           0.000000            0.013414            0.026200
---------------------------------------------------------------------------------------
";

/// Of 6.2x: a warning above, other spaces in the row.
const NEW_BW: &str = "\
 WARNING: BW peak won't be measured in this run.
---------------------------------------------------------------------------------------
                    Send BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 16\t\tTransport type : IB
 CQE Poll Batch  : Dynamic
 Mtu             : 4096[B]
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1859868          0.00               97.51  \t\t     0.185987
---------------------------------------------------------------------------------------
";

const OLD_LAT: &str = "\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 64      1000          4.23           5929.51      4.66     \t       32.62       \t265.43 \t\t140.95  \t\t5929.51
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
        (65_536, OLD_BW, 0.017_586 * 524.288, 1e-9, 0.017_586),
        (64, OLD_SMALL, 0.013_414, 1e-6, 0.026_2),
        (65_536, NEW_BW, 97.51, 0.005, 0.185_987),
    ] {
        let (gbit_per_s, mmsg_per_s) = bandwidth(size_bytes, text);
        assert_eq!(mmsg_per_s, expected_mmsg_per_s);
        assert!((gbit_per_s - expected_gbit_per_s).abs() < tolerance);
    }
    let latency = figure(Program::IbReadLat, 64, OLD_LAT).unwrap();
    assert_eq!(latency, Figure::Latency { median_ns: 4660.0 });
}

#[test]
fn large_messages_take_the_bandwidths_digits() {
    let text =
        OLD_BW.replace("65536      17588", "8388608     137").replace("0.017586", "0.000137");
    assert_eq!(bandwidth(8_388_608, &text), (9.22, 0.000_137));
}

#[test]
fn nonsense_is_an_error() {
    assert_eq!(refused(""), "it printed no table");
    let row_only = "65536 17588 0.00 9.22 0.017586";
    assert_eq!(refused(row_only), "it printed no table");
    assert!(refused(&OLD_BW.replace("Gb/sec", "MiB/sec")).contains("unexpected heading"));
    assert!(refused(OLD_LAT).contains("unexpected heading"));
    assert_eq!(refused(OLD_SMALL), "its table says a size of 64");
    let head_only = OLD_BW.split_inclusive('\n').take(11).collect::<String>();
    assert_eq!(refused(&head_only), "its table has no row");
    let twice = OLD_BW.to_owned() + " 65536 17588 0.00 9.22 0.017586\n";
    assert!(refused(&twice).contains("2 rows"));
    for (from, to, says) in [
        ("0.017586", "0.000000", "a message rate of 0.000000"),
        ("0.017586", "nan", "a message rate of nan"),
        ("0.017586", "inf", "a message rate of inf"),
        ("0.017586", "-0.017586", "a message rate of -0.017586"),
        ("9.22", "1099.14", "a bandwidth of 1099.14"),
        ("9.22", "-nan", "a bandwidth of -nan"),
        ("17588", "0", "iterations 0"),
        ("0.017586", "", "has no row"),
        ("9.22", "9,22", "has no row"),
    ] {
        has(refused(&OLD_BW.replace(from, to)), [says]);
    }
    let zero = figure(Program::IbReadLat, 64, &OLD_LAT.replace("4.66", "0.00"));
    assert!(zero.unwrap_err().to_string().contains("0.00"));
}

#[test]
fn peak_deviation_and_maximum_are_never_used() {
    let no_peak = OLD_BW.replace(" 0.00 ", " nan ");
    assert_eq!(bandwidth(65_536, &no_peak), bandwidth(65_536, OLD_BW));
    let no_deviation = OLD_LAT.replace("265.43", "-nan").replace("5929.51", "inf");
    let [read, usual] = [&no_deviation, OLD_LAT].map(|text| figure(Program::IbReadLat, 64, text));
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
