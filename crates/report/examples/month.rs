//! Makes up a month of nights of 64 nodes, three runs of each of the 63 rounds of pairs, and adds it to a history:
//! `cargo run --release -p report --example month DIR`. From the 24th night on node7 sends a tenth less. How long a page of it
//! takes says `time rocebench history trend --folder DIR --page PLOTS`; `docs/dev/performance.md` has the figures.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;

use results::history;
use results::sample::mesh::{Mesh, Slow};

const NIGHTS: u64 = 30;
const STEP: u64 = 24;
const NODES: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: month DIR")?;
    let folder = PathBuf::from(folder);
    for night in 1..=NIGHTS {
        let slow = (night >= STEP).then_some(Slow::Sends(6, 0.9));
        let mesh = Mesh::new(NODES).noise(0.03);
        let mut result =
            Mesh { seed: night, slow: slow.into_iter().collect(), histograms: true, ..mesh }
                .pairs();
        result.started_at = format!("2026-11-{night:02}T02:00:00Z");
        history::add(&folder, &result)?;
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder)? {
        bytes += entry?.metadata()?.len();
    }
    println!("{NIGHTS} nights of {NODES} nodes: {:.1} MB", bytes as f64 / 1e6);
    Ok(())
}
