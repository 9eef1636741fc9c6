//! The line of a running sweep on a terminal.

use testing::process::Call;
use testing::program::{apart, call, rocebench};

/// A terminal of 80 columns, made by util-linux's `script`.
fn on_a_terminal(words: &str) -> Call {
    let shell = format!("stty cols 80; exec {} {words}", rocebench().display());
    Call::new(apart("script"), "--quiet --return --command")
        .args(&[&shell, "/dev/null"])
        .env("TERM", "xterm")
        // The line is to be alone.
        .env("ROCEBENCH_LOG", "warn")
}

/// A time as the line has it, in nanoseconds.
fn nanoseconds(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let unit = ["ns", "µs", "ms", "s"].iter().position(|it| *it == unit).unwrap();
    number.parse::<f64>().unwrap() * 1000_f64.powi(unit as i32)
}

#[test]
fn the_p99_of_each_second_is_among_the_percentiles_of_the_run() {
    let ended = on_a_terminal("-d soft0 --op write -q 4 -s 64 -t 4 -Q 1 -D 2s --warmup 0").passes();
    // Each redrawing of the line, without the sequences that move the cursor.
    let lines = ended.stdout.split(['\r', '\n']);
    let live: Vec<&str> =
        lines.filter(|line| line.contains("measure") && line.contains("  p99 ")).collect();
    let p99s: Vec<f64> = live
        .iter()
        .map(|line| {
            let (_, behind) = line.split_once("  p99 ").unwrap();
            let words: Vec<&str> = behind.split_whitespace().skip(1).take(2).collect();
            nanoseconds(&words.join(" "))
        })
        .collect();
    assert!(!p99s.is_empty(), "{}", ended.stdout);
    for line in &live {
        let shown =
            line.split("measure").nth(1).unwrap().split('\u{1b}').next().unwrap().trim_end();
        // Behind the bar of six columns between blanks, and the word.
        assert!(shown.chars().count() < 80 - 16, "{line}");
    }
    // Notes are broken between words.
    ended.shows(&["rocebench: note: soft0 is the embedded software device"]);
    let (note, _) = ended.stdout.split_once("adapter").unwrap();
    assert!(note.lines().all(|line| line.chars().count() <= 80), "{note}");
    let latency = &ended.first_flow()["latency_ns"];
    let [least, most] = ["p50", "max"].map(|name| latency[name].as_f64().unwrap());
    for p99 in p99s {
        // A line has three digits.
        assert!((0.99 * least..1.01 * most).contains(&p99), "{p99}: {latency}");
    }
}

#[test]
fn a_long_run_has_a_line_each_so_often_and_its_worst_second() {
    let words = "-d soft0 --op write -q 4 -s 64 -t 4 -Q 1 -D 2500ms --warmup 0 --timeout 18";
    let ended = call(&format!("{words} --every 500ms")).passes();
    let stderr = ended.stderr();
    let has_line =
        |parts: &[&str]| stderr.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has_line(&[" Gb/s  ", " Mmsg/s  p99 ", " path events"]), "{stderr}");
    assert!(has_line(&["  worst second: ", " on average), ", " s after "]), "{stderr}");
    call(&format!("{words} --every 1s --quiet")).is_refused(&["--every", "--quiet"]);
    call("soak -d soft0 --every 1s").is_refused(&["does not take --every"]);
}
