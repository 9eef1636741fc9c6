//! Measures the time of `rocebench plot` for 10,000 cases in ten files: `cargo bench --bench plot`. A number as
//! argument sets the number of files.

#![allow(clippy::print_stdout)] // printing is what it is for

#[path = "../tests/support/synthetic_results.rs"]
mod synthetic_results;

use std::error::Error;
use std::process::Command;
use std::time::Instant;

use report::results::json;
use synthetic_results::Synthetic;

/// 3 operations × 3 layouts × 8 sizes × 7 numbers of QPs × 2 of workers.
const CASES_PER_FILE: usize = 1008;

fn main() -> Result<(), Box<dyn Error>> {
    let files = std::env::args()
        .find_map(|word| word.parse().ok())
        .unwrap_or(10);
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    std::fs::create_dir(&results)?;
    let mut bytes = 0;
    for number in 0..files {
        let started_at: &'static str = format!("2026-11-{:02}T12:00:00Z", 1 + number % 28).leak();
        let git: &'static str = format!("{number:012x}").leak();
        let synthetic = Synthetic {
            cqs: vec!["shared", "per-worker", "per-qp"],
            qps: vec![1, 2, 4, 6, 8, 12, 16],
            sizes: vec![64, 256, 1024, 4096, 16384, 65536, 262_144, 1_048_576],
            workers: vec![1, 4],
            runs: 1,
            seed: number as u64,
            git,
            started_at,
            ..Synthetic::default()
        };
        let result = synthetic.result();
        assert_eq!(result.cases.len(), CASES_PER_FILE);
        let path = results.join(format!("{number:04}.json"));
        json::write(&result, &path)?;
        bytes += std::fs::metadata(path)?.len();
    }
    let plots = folder.path().join("plots");
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_rocebench"))
        .args(["plot", "--quiet", "-o"])
        .args([&plots, &results])
        .output()?;
    let seconds = began.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let page = std::fs::metadata(plots.join("index.html"))?.len();
    println!(
        "{} cases in {files} files ({:.1} MB) drawn in {seconds:.2} s; the page has {:.1} MB",
        files * CASES_PER_FILE,
        bytes as f64 / 1e6,
        page as f64 / 1e6
    );
    Ok(())
}
