//! Plants each cause many times and prints as Markdown what `why` names: `cargo run --release -p why --example confusion
//! [--noise 0.08] [--count 200] [--first 0] [CAUSE [NUMBER]]`. With a number it prints that diagnosis.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../../tests/virtual_time/confusion.rs"]
mod confusion;
#[path = "../../tests/virtual_time/laboratory.rs"]
mod laboratory;
#[path = "../../tests/virtual_time/plants.rs"]
mod plants;
#[path = "../../tests/virtual_time/traffic.rs"]
mod traffic;

use std::env;
use std::time::Instant;

use confusion::{Counts, diagnosed};
use plants::PLANTS;
use why::Laboratory;

fn main() {
    let (mut first, mut count, mut noise, mut words) = (0, 200, 0.03, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--first" => first = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(first),
            "--count" => count = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(count),
            "--noise" => noise = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(noise),
            _ => words.push(argument),
        }
    }
    let only = words.first();
    let plants = PLANTS.iter().filter(|plant| only.is_none_or(|name| plant.name == name));
    if let Some(number) = words.get(1).and_then(|number| number.parse().ok()) {
        for plant in plants {
            let (site, case) = plant.case(number, noise);
            println!("{site:#?} {case:#?}");
            let (diagnosis, mut laboratory) = diagnosed(plant, number, noise);
            let Ok(run) = laboratory.run(&case);
            println!("{:?}", run.path_events);
            println!("{diagnosis:#?}\n{} runs", laboratory.runs);
        }
        return;
    }
    println!(
        "| planted | proven | likely | one of two | unknown | wrong | runs | seconds | in place of it |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|---|");
    for plant in plants {
        let began = Instant::now();
        let counts = Counts::new(plant, first..first + count, noise);
        let each = f64::from(counts.diagnoses.max(1));
        let runs = f64::from(counts.runs) / each;
        let instead: Vec<String> = counts
            .instead
            .iter()
            .map(|(named, (times, number))| format!("{times}× {named}, as {number}"))
            .collect();
        println!(
            "| {} | {} | {} | {} | {} | {} | {runs:.0} | {:.0} | {} |",
            plant.name,
            counts.proven,
            counts.likely,
            counts.several,
            counts.unknown,
            counts.wrong,
            runs * laboratory::RUN.as_secs_f64(),
            instead.join("; ")
        );
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let cases = counts.cases as f64 / each;
        eprintln!("{}: {:.1} ms a diagnosis, {cases:.1} cases", plant.name, ms / each);
    }
}
