//! Measures the time of `rocebench plot` for 10,000 cases in ten files, and for patterns over many nodes: `cargo bench
//! --bench plot`. A number as argument sets the number of files.

#![allow(clippy::print_stdout)] // printing is what it is for

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use results::json;
use results::model::ResultFile;
use results::sample::mesh::{Mesh, Slow};
use results::sample::sweep::Synthetic;

/// 3 operations × 3 layouts × 8 sizes × 7 numbers of QPs × 2 of workers.
const CASES_PER_FILE: usize = 1008;

fn main() -> Result<(), Box<dyn Error>> {
    let files = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(10);
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    std::fs::create_dir(&results)?;
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
        json::write(&result, &results.join(format!("{number:04}.json")))?;
    }
    let cases = format!("{} cases in {files} files", files * CASES_PER_FILE);
    measure(&cases, &results, &folder.path().join("plots"))?;
    for (nodes, runs) in [(64, 3), (256, 1)] {
        let mut mesh = Mesh::new(nodes).with(Slow::Receives(6, 0.6)).with(Slow::Pair(2, 8, 0.5));
        (mesh.runs, mesh.noise, mesh.histograms) = (runs, 0.02, true);
        type Made = fn(&Mesh) -> ResultFile;
        let patterns: [(&str, Made); 2] =
            [("pairs", Mesh::pairs), ("all-to-all", Mesh::all_to_all)];
        for (name, result) in patterns {
            let path = folder.path().join(format!("{name}-{nodes}.json"));
            json::write(&result(&mesh), &path)?;
            let plots = folder.path().join(format!("{name}-{nodes}"));
            measure(&format!("{name} of {nodes} nodes"), &path, &plots)?;
        }
    }
    Ok(())
}

/// Draws, and says how long that took.
fn measure(what: &str, results: &Path, plots: &Path) -> Result<(), Box<dyn Error>> {
    let bytes: std::io::Result<u64> = if results.is_dir() {
        std::fs::read_dir(results)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
    } else {
        std::fs::metadata(results).map(|metadata| metadata.len())
    };
    let bytes = bytes?;
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_rocebench"))
        .args(["plot", "--quiet", "-o"])
        .args([plots, results])
        .output()?;
    let seconds = began.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let page = std::fs::metadata(plots.join("index.html"))?.len();
    println!(
        "{what} ({:.1} MB): {seconds:.2} s; the page has {:.1} MB",
        bytes as f64 / 1e6,
        page as f64 / 1e6
    );
    Ok(())
}
