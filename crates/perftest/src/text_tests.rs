//! Text of both generations, and damaged text.

use proptest::prelude::*;

use super::*;
use results::sample::has;

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
    let (gbit_per_s, mmsg_per_s) = bandwidth(65_536, OLD_BW);
    assert_eq!(mmsg_per_s, 0.017_586);
    // The rate has more digits.
    assert!((gbit_per_s - 0.017_586 * 524.288).abs() < 1e-9);
    let (gbit_per_s, mmsg_per_s) = bandwidth(64, OLD_SMALL);
    assert_eq!(mmsg_per_s, 0.026_2);
    assert!((gbit_per_s - 0.013_414).abs() < 1e-6);
    let (gbit_per_s, mmsg_per_s) = bandwidth(65_536, NEW_BW);
    assert_eq!(mmsg_per_s, 0.185_987);
    assert!((gbit_per_s - 97.51).abs() < 0.005);
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
    let text = OLD_BW.replace(" 0.00 ", " nan ");
    assert_eq!(bandwidth(65_536, &text), bandwidth(65_536, OLD_BW));
    let text = OLD_LAT.replace("265.43", "-nan").replace("5929.51", "inf");
    let of = |text: &str| figure(Program::IbReadLat, 64, text);
    assert_eq!(of(&text), of(OLD_LAT));
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
