//! `--quick`: further rounds of pairs, as long as flows look bad that were measured too seldom.
//!
//! Every path has to be used once to be found, so all rounds of pairs come first, each of them short. A healthy flow may be
//! slow once, by chance. So each flow whose median looks bad is measured once more, in pass after pass, until it looks well
//! or has [`ENOUGH`] runs: short runs at different times tell chance better than one long window. A node is found by all of
//! its flows, which are runs enough. The nodes that a round leaves have other flows meanwhile, so that the network is as
//! full as it was.

use std::collections::HashSet;

use experiment::{Measurer, Stop, run};
use plan::{Case, Flow, quick};
use report::judge::mesh::{Cell, Matrix, Mesh, Place, floor};
use statistics::spread;

use super::sweeper::{StopReason, Sweeper};

/// Runs with which a flow, or all flows of a node, are known.
const ENOUGH: usize = 5;

/// A flow looks bad that is so many standard deviations of a flow worse than the median.
const DEVIATIONS: f64 = 2.5;

/// Rounds of a pass: a flow that looks well after one is not measured in the next.
const OF_A_PASS: usize = 16;

/// Measures again what looks bad in the rounds of these cases, which have run.
///
/// # Errors
/// The sweep cannot go on.
pub(super) fn measure_again(sweeper: &mut Sweeper<'_>, cases: &[Case]) -> Result<(), StopReason> {
    for rounds in quick::rounds(cases) {
        let done = rounds.len();
        let most = quick::most_further(done) + done;
        run(&mut Passes { sweeper: &mut *sweeper, rounds, done, most, pass: Vec::new() })?;
    }
    Ok(())
}

/// Passes over what looks bad, whose sides are rounds of flows.
struct Passes<'a, 'b, 'c> {
    sweeper: &'a mut Sweeper<'b>,
    /// Rounds of pairs that were planned.
    rounds: Vec<&'c Case>,
    /// Rounds of pairs so far, and at most.
    done: usize,
    most: usize,
    pass: Vec<Case>,
}

impl Measurer for Passes<'_, '_, '_> {
    type Error = StopReason;

    fn order(&mut self, _: u32) -> Vec<usize> {
        let mesh = mesh_of(self.sweeper, self.rounds[0]);
        let pass = mesh.map(|mesh| next_pass(&mesh, self.done, self.most - self.done));
        self.pass = (self.done + 1..)
            .zip(pass.unwrap_or_default())
            .map(|(number, links)| round(&self.rounds, number, &links))
            .collect();
        self.done += self.pass.len();
        self.sweeper.total += self.pass.len();
        self.sweeper.observer.runs_added(&self.pass);
        (0..self.pass.len()).collect()
    }

    fn measure(&mut self, side: usize, _: u32) -> Result<(), StopReason> {
        let index = self.sweeper.outcome.result.cases.len();
        self.sweeper.run(index, &self.pass[side], 1, 1).map(drop)
    }

    /// Whether more is to be known says the order of the next pass.
    fn look(&mut self, _: &experiment::Round) -> Result<bool, StopReason> {
        Ok(false)
    }

    fn stop(&self) -> Stop {
        Stop { most: u32::MAX, budget: None }
    }
}

/// What the rounds to which a case belongs say so far.
fn mesh_of(sweeper: &Sweeper<'_>, case: &Case) -> Option<Mesh> {
    Matrix::of_file(&sweeper.outcome.result)
        .into_iter()
        .find(|matrix| matrix.cases.contains(&case.id))
        .map(Mesh::new)
}

fn goes_over(flow: &Flow, (from, to): Link) -> bool {
    let own = (flow.from as usize, flow.to as usize);
    own == (from, to) || flow.bidirectional && own == (to, from)
}

/// A further round with these flows. Each node has a part in the rounds of pairs, so that its number in their matrix is
/// that in the plan.
fn round(rounds: &[&Case], number: usize, links: &[Link]) -> Case {
    let flows = links.iter().flat_map(|link| {
        // Over all rails.
        rounds.iter().flat_map(|case| &case.flows).filter(|flow| goes_over(flow, *link)).cloned()
    });
    Case {
        id: quick::further_id(rounds, number),
        settings: rounds[0].settings.clone(),
        flows: flows.collect(),
        check: None,
    }
}

/// A flow by the numbers of its nodes: from, to.
type Link = (usize, usize);

/// Flows of which no node has more than one.
struct Round {
    links: Vec<Link>,
    is_busy: Vec<bool>,
}

impl Round {
    /// Adds a flow, unless one of its nodes has another.
    fn takes(&mut self, (from, to): Link) -> bool {
        let is_free = !self.is_busy[from] && !self.is_busy[to];
        if is_free {
            (self.is_busy[from], self.is_busy[to]) = (true, true);
            self.links.push((from, to));
        }
        is_free
    }

    /// Gives the nodes without a flow one, with other partners from round to round.
    fn fill(&mut self, matrix: &Matrix, number: usize) {
        let nodes = 0..self.is_busy.len();
        let mut free: Vec<usize> = nodes.filter(|node| !self.is_busy[*node]).collect();
        // The first stays, and the others turn around it.
        if let Some((_, others @ [_, ..])) = free.split_first_mut() {
            let by = number % others.len();
            others.rotate_left(by);
        }
        let (one, other) = free.split_at(free.len() / 2);
        let links = one
            .iter()
            .copied()
            .zip(other.iter().rev().copied())
            .filter(|(from, to)| matrix.cell(*from, *to).is_some());
        self.links.extend(links);
    }
}

/// The rounds of the next pass, at most `left`, in which no node has more than one flow; none when enough is known. `done`
/// are the rounds before.
fn next_pass(mesh: &Mesh, done: usize, left: usize) -> Vec<Vec<Link>> {
    let matrix = &mesh.matrix;
    let most = OF_A_PASS.min(left);
    let mut rounds: Vec<Round> = Vec::new();
    for link in doubted(mesh) {
        let is_taken = rounds.iter_mut().any(|round| round.takes(link));
        if !is_taken && rounds.len() < most {
            let mut round = Round { links: Vec::new(), is_busy: vec![false; matrix.nodes.len()] };
            round.takes(link);
            rounds.push(round);
        }
    }
    (done..)
        .zip(rounds)
        .map(|(number, mut round)| {
            round.fill(matrix, number);
            round.links
        })
        .collect()
}

fn is_of(cell: &Cell, places: &[Place]) -> bool {
    places.iter().any(|it| it.has(cell.from, cell.to))
}

/// The flows of which more has to be known, the worst first.
fn doubted(mesh: &Mesh) -> Vec<Link> {
    let matrix = &mesh.matrix;
    let quantity = matrix.quantity();
    let usual = matrix.median(quantity).filter(|_| matrix.can_tell());
    let Some(usual) = usual.filter(|usual| *usual > 0.0) else {
        return Vec::new();
    };
    let places: Vec<Place> = mesh
        .outliers
        .iter()
        .map(|it| it.place)
        .chain(mesh.lossy.iter().map(|it| it.place))
        .collect();
    let (known, open): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|place| {
        matrix
            .cells
            .iter()
            .filter(|it| place.has(it.from, it.to))
            .map(|it| it.runs.len())
            .sum::<usize>()
            >= ENOUGH
    });
    let sign = if quantity.higher_is_better() { 1.0 } else { -1.0 };
    // How much worse than usual it is, as a share.
    let worse = |cell: &Cell| Some(sign * (1.0 - cell.figures.of(quantity)? / usual));
    let shares: Vec<f64> = matrix.cells.iter().filter_map(worse).collect();
    let floor = floor(quantity).max(DEVIATIONS * spread(&shares).unwrap_or(0.0));
    let mut found: Vec<(f64, Link)> = Vec::new();
    for cell in matrix.cells.iter().filter(|cell| cell.runs.len() + cell.lost < ENOUGH) {
        let excess = match worse(cell) {
            // What failed is told. What is doubtful may be measured well another time.
            None if cell.doubtful > 0 => f64::INFINITY,
            Some(_) if is_of(cell, &known) => continue,
            Some(_) if cell.is_lossy() || is_of(cell, &open) => f64::INFINITY,
            Some(excess) if excess > floor => excess,
            None | Some(_) => continue,
        };
        found.push((excess, (cell.from, cell.to)));
    }
    found.sort_by(|(one, _), (two, _)| two.total_cmp(one));
    let mut seen = HashSet::new();
    // Traffic both ways is measured both ways at once.
    found
        .into_iter()
        .map(|(_, link)| link)
        .filter(|(from, to)| {
            !matrix.settings.bidirectional || seen.insert((*from.min(to), *from.max(to)))
        })
        .collect()
}

#[cfg(test)]
#[path = "quick_tests.rs"]
mod tests;
