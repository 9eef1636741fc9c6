//! `--quick`: further rounds of pairs, as long as flows look bad that were measured too seldom (`rounds`). This file puts
//! them into a sweep.

mod rounds;

use report::judge::mesh::{Matrix, Mesh};

use plan::{Case, Flow, quick};

use super::sweeper::{StopReason, Sweeper};
use rounds::{Link, next_pass};

/// Measures again what looks bad in the rounds of a sweep that have run.
///
/// # Errors
/// The sweep cannot go on.
pub(super) fn measure_again(sweeper: &mut Sweeper<'_>) -> Result<(), StopReason> {
    for rounds in quick::rounds(sweeper.sweep) {
        let (mut done, most) = (rounds.len(), quick::most_further(rounds.len()) + rounds.len());
        while let Some(mesh) = mesh_of(sweeper, rounds[0]) {
            let pass = next_pass(&mesh, done, most - done);
            if pass.is_empty() {
                break;
            }
            let pass: Vec<Case> = (done + 1..)
                .zip(&pass)
                .map(|(number, links)| round(&rounds, number, links))
                .collect();
            done += pass.len();
            sweeper.total += pass.len();
            sweeper.observer.cases_added(&pass);
            for case in &pass {
                let index = sweeper.outcome.result.cases.len();
                sweeper.run(index, case, 1, 1)?;
            }
        }
    }
    Ok(())
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
    }
}
