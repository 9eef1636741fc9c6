//! What is named where something is planted.

use std::collections::BTreeMap;
use std::time::Duration;

use results::model::{Certainty, Diagnosis};
use why::{Request, diagnose};

use crate::laboratory::{RUN, VirtualLaboratory};
use crate::plants::{Plant, Truth};

/// A row of the table.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub proven: u32,
    pub likely: u32,
    /// One of at most two, the right one among them.
    pub several: u32,
    pub unknown: u32,
    pub wrong: u32,
    /// What was named in place of the right one: how often, and the last such case's number.
    pub instead: BTreeMap<String, (u32, u64)>,
    pub diagnoses: u32,
    pub runs: u32,
    pub cases: usize,
}

impl Counts {
    pub fn right(&self) -> u32 {
        self.proven + self.likely + self.several
    }

    /// Diagnoses so many cases of a plant.
    pub fn new(plant: &Plant, numbers: std::ops::Range<u64>, noise: f64) -> Counts {
        let mut counts = Counts::default();
        for number in numbers {
            let (diagnosis, laboratory) = diagnosed(plant, number, noise);
            counts.add(plant, number, &diagnosis);
            counts.runs += laboratory.runs;
            counts.cases += laboratory.cases();
        }
        counts
    }

    fn add(&mut self, plant: &Plant, number: u64, diagnosis: &Diagnosis) {
        let is_right = |id: &str| id == plant.name || plant.also.contains(&id);
        let named: Vec<&str> = diagnosis.causes.iter().map(|cause| cause.id.as_str()).collect();
        let has_right = named.iter().any(|id| is_right(id));
        self.diagnoses += 1;
        let counted = match (plant.truth(), diagnosis.certainty) {
            (Truth::Link, Certainty::AtTheLink) => &mut self.proven,
            (Truth::Unknown, Certainty::Unknown) => &mut self.proven,
            (_, Certainty::Proven) if has_right => &mut self.proven,
            (_, Certainty::Likely) if has_right => &mut self.likely,
            (_, Certainty::OneOfSeveral) if has_right && named.len() <= 2 => &mut self.several,
            (_, Certainty::Proven | Certainty::Likely | Certainty::AtTheLink) => &mut self.wrong,
            (Truth::Link | Truth::Unknown, Certainty::OneOfSeveral) => &mut self.wrong,
            _ => &mut self.unknown,
        };
        *counted += 1;
        let is_decided = self.right() + self.unknown + self.wrong;
        debug_assert_eq!(is_decided, self.diagnoses);
        if named != [plant.name] && !(named.is_empty() && plant.truth() != Truth::Cause) {
            let words = match (named.is_empty(), diagnosis.certainty) {
                (true, certainty) => certainty.name().to_owned(),
                (false, certainty) => format!("{} ({})", named.join(" or "), certainty.name()),
            };
            let entry = self.instead.entry(words).or_default();
            *entry = (entry.0 + 1, number);
        }
    }
}

/// What is said of a case of a plant.
pub fn diagnosed(plant: &Plant, number: u64, noise: f64) -> (Diagnosis, VirtualLaboratory) {
    let (site, case) = plant.case(number, noise);
    let mut laboratory = VirtualLaboratory::new(site);
    let situation = laboratory.situation();
    let request = Request { budget: Duration::from_secs(60), run: RUN };
    let (diagnosis, ended) = diagnose(&mut laboratory, &case, &situation, request);
    let Ok(()) = ended;
    (diagnosis, laboratory)
}
