//! Packet scripts: every file of `tests/scripts` is a behaviour of the protocol. `docs/dev/softroce.md` says how to write one.

mod device;
mod language;
mod packet;
mod player;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// What is wrong, line by line; empty if it holds.
fn failures(name: &str, script: &str) -> String {
    let mut report = String::new();
    let played = language::cases(script).map(|cases| {
        for case in cases {
            if let Err((number, text)) = player::play(&case) {
                let row = if case.row.is_empty() { "" } else { "\n    with " };
                writeln!(report, "{name}:{number}: {text}{row}{}", case.row).unwrap();
            }
        }
    });
    if let Err((number, text)) = played {
        writeln!(report, "{name}:{number}: {text}").unwrap();
    }
    report
}

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut report = String::new();
    for path in paths {
        let name = format!("tests/scripts/{}", path.file_name().unwrap().to_string_lossy());
        report += &failures(&name, &fs::read_to_string(path).unwrap());
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_page_shows_a_script() {
    let page = include_str!("../../../../../docs/dev/softroce.md");
    assert!(page.contains(include_str!("../../scripts/rnr_pause.pkt")));
}

const SCRIPT: &str = "\
# A peer that does not answer.
device rc timeout=14 retry_cnt=0
+0            post SEND len=8
              > SEND_ONLY psn=0 len=8
+67.108864ms  wc send RETRY_EXC_ERR
              state ERR
              count timeouts 1
              memory 0 data=00*8
";

/// Words of that script, wrong ones in their place, and how the report begins and ends: packets that are missing, that no line
/// expects, and that differ; completions that are missing, too early, too late, that no line expects, and that differ; events,
/// states, counters and memory; mistakes.
const WRONG: &str = "\
state ERR | > SEND_ONLY psn=1 | 6: > SEND_ONLY psn=1 | It did not come, and nothing else comes.
> SEND_ONLY psn=0 len=8 | | 5: +67.108864ms  wc send RETRY_EXC_ERR | No line expects a: > SEND_ONLY ecn=ect0 psn=0 len=8 \
    ackreq=1 pkey=65535 dqpn=peer, +0 ms from the start, -67.108864 ms from this line.
> SEND_ONLY | > WRITE_ONLY | 4: > WRITE_ONLY psn=0 len=8 | Expected WRITE_ONLY, found SEND_ONLY.
psn=0 len=8 | psn=1 len=8 | 4: > SEND_ONLY psn=1 len=8 | psn: Expected 1, found 0.
psn=0 len=8 | psn=0 imm=8 | 4: > SEND_ONLY psn=0 imm=8 | It has no imm.
psn=0 len=8 | psn=0 data=01*8 | 4: > SEND_ONLY psn=0 data=01*8 | Expected 01 at 0, found 00.
psn=0 len=8 | len=8 | 4: > SEND_ONLY len=8 | `psn=` is missing.
+67.108864ms | +67.108863ms | 5: +67.108863ms  wc send RETRY_EXC_ERR | It did not come. Next came a: wc send RETRY_EXC_ERR \
    qp=0 id=1, +67.108864 ms from the start, +0.000001 ms from this line.
+67.108864ms | +67.108865ms | 5: +67.108865ms  wc send RETRY_EXC_ERR | No line expects a: wc send RETRY_EXC_ERR qp=0 id=1, \
    +67.108864 ms from the start, -0.000001 ms from this line.
+67.108864ms  wc send RETRY_EXC_ERR | | 6: state ERR | Expected ERR, found RTS.
+67.108864ms  wc send RETRY_EXC_ERR | recv len=8 ; +67.108864ms wc send RETRY_EXC_ERR ; +1us wc recv WR_FLUSH_ERR \
    | 5: +1us wc recv WR_FLUSH_ERR | No line expects a: wc recv WR_FLUSH_ERR qp=0 id=1
memory 0 data=00*8 | wc recv WR_FLUSH_ERR | 8: wc recv WR_FLUSH_ERR | It did not come, and nothing else comes.
RETRY_EXC_ERR | SUCCESS | 5: +67.108864ms  wc send SUCCESS | Expected send SUCCESS, found send RETRY_EXC_ERR.
state ERR | event QP_FATAL | 6: event QP_FATAL | It did not come, and nothing else comes.
state ERR | state RTS | 6: state RTS | Expected RTS, found ERR.
timeouts 1 | timeouts 2 | 7: count timeouts 2 | Expected 2, found 1.
timeouts 1 | time_outs 1 | 7: count time_outs 1 | There is no such counter.
data=00*8 | data=00*7+01 | 8: memory 0 data=00*7+01 | Expected 01 at 7, found 00.
SEND len=8 | SEND length=8 | 3: +0            post SEND length=8 | `length=` means nothing here.
state ERR | states ERR | 6: states ERR | No line begins like this, or it has other words.
+0 | +0h | 3: | +0h is no time.
# A | A | 1: | A script begins with
";

#[test]
fn a_wrong_line_is_named_with_what_came() {
    assert_eq!(failures("it", SCRIPT), "");
    for row in WRONG.lines() {
        let [right, wrong, line, text] = row.splitn(4, '|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}");
        };
        let report = failures("it", &SCRIPT.replacen(right, wrong, 1));
        assert!(report.starts_with(&format!("it:{line}")), "{row}: {report}");
        assert!(report.contains(text), "{row}: {report}");
    }
    let unexpected = SCRIPT.lines().take(3).collect::<Vec<_>>().join("\n");
    let report = failures("it", &unexpected);
    assert!(report.starts_with("it:3: After the last line: No line expects a: > SEND_ONLY"));
}
