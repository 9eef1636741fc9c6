//! Figures of many nodes: maps of who moved how much to whom, strips of nodes, and curves over how many send at
//! once.

mod maps;
mod subject;

use settings::{Pattern, Settings};

use self::subject::{Subject, words};
use crate::judge::mesh::{Fan, Matrix, NodesFinding};
use crate::observe::Metric;
use crate::show::plot::figure::Figure;
use crate::show::plot::rows::settings::Setting;
use crate::show::plot::specs::values;
use crate::show::sentences::of_nodes;
use results::load::Loaded;

pub use subject::Racks;

const MOST_MATRICES: usize = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    /// What is slow and where to look, and what a fan says.
    pub sentences: Vec<String>,
    pub figures: Vec<Figure>,
    /// How many matrices there are, and how many of them are drawn.
    pub matrices: (usize, usize),
}

/// All figures of nodes. `sums` are the results with the flows of each case of a pattern as one.
pub(crate) fn figures(results: &[Loaded], sums: &[Loaded], racks: &Racks) -> Nodes {
    let matrices = matrices(results);
    let count = matrices.len();
    let mut subjects: Vec<Subject<'_>> = matrices
        .into_iter()
        .take(MOST_MATRICES)
        .map(|(loaded, matrix)| Subject::new(loaded, matrix, racks))
        .collect();
    tell_apart(&mut subjects);
    let is_one = subjects.len() == 1;
    let sentences = subjects.iter().flat_map(|it| sentences(it, is_one));
    let of_subjects =
        (1..).zip(&subjects).flat_map(|(number, subject)| of_subject(subject, number));
    let of_fans = values::FANS.iter().flat_map(|spec| spec.figures(sums));
    Nodes {
        matrices: (count, subjects.len()),
        sentences: sentences.collect(),
        figures: of_subjects.chain(of_fans).collect(),
    }
}

/// What a matrix says; of one among others with its title.
fn sentences(subject: &Subject<'_>, is_one: bool) -> Vec<String> {
    let matrix = &subject.matrix;
    let mut fans = Fan::of_file(&subject.loaded.result).into_iter();
    let fan = fans.find(|fan| {
        let mut points = fan.points.iter();
        points.any(|point| matrix.cases.contains(&point.case))
    });
    let title = if is_one { String::new() } else { format!("{}: ", matrix.title) };
    let fan_finding = fan.map(NodesFinding::Fan);
    subject
        .findings
        .iter()
        .chain(&fan_finding)
        .map(|finding| title.clone() + &of_nodes(finding))
        .collect()
}

fn of_subject(subject: &Subject<'_>, number: usize) -> Vec<Figure> {
    // In an open loop all have the rate that they were offered.
    let is_closed = subject.matrix.settings.is_closed_loop();
    let quantity = if is_closed { Metric::GbitPerS } else { Metric::P99Ns };
    let is_map = maps::is_worth_a_map(subject);
    let has_late = is_map && is_closed && subject.has_slow(Metric::P99Ns);
    let drawn = [
        is_map.then(|| maps::map_figure(subject, quantity, format!("nodes-map-{number}"))),
        has_late
            .then(|| maps::map_figure(subject, Metric::P99Ns, format!("nodes-p99-map-{number}"))),
        Some(maps::strip_figure(subject, quantity, format!("nodes-strip-{number}"))),
    ];
    drawn.into_iter().flatten().flatten().collect()
}

/// The matrices of all files, the newest file first; of equal ones the newest, and of a fan that with the most nodes.
fn matrices(results: &[Loaded]) -> Vec<(&Loaded, Matrix)> {
    let mut newest: Vec<&Loaded> = results.iter().collect();
    newest.sort_by(|one, other| other.result.started_at.cmp(&one.result.started_at));
    let mut matrices: Vec<(&Loaded, Matrix)> = Vec::new();
    for loaded in newest {
        for matrix in without_smaller_fans(Matrix::of_file(&loaded.result)) {
            let has_figures = matrix.cells.iter().any(|cell| !cell.runs.is_empty());
            let has_newer = matrices
                .iter()
                .any(|(_, newer)| newer.settings == matrix.settings && newer.nodes == matrix.nodes);
            if has_figures && !has_newer {
                matrices.push((loaded, matrix));
            }
        }
    }
    matrices
}

fn without_smaller_fans(matrices: Vec<Matrix>) -> Vec<Matrix> {
    let mut kept: Vec<Matrix> = Vec::new();
    for matrix in matrices {
        let is_fan = matches!(matrix.pattern, Pattern::Incast(_) | Pattern::Outcast(_));
        let alike = kept
            .iter_mut()
            .find(|other| is_fan && but_for_fan(&other.settings) == but_for_fan(&matrix.settings));
        match alike {
            Some(other) if other.nodes.len() < matrix.nodes.len() => *other = matrix,
            Some(_) => {}
            None => kept.push(matrix),
        }
    }
    kept
}

fn but_for_fan(settings: &Settings) -> Settings {
    Settings { fan_in: None, fan_out: None, ..settings.clone() }
}

/// Says of each what it does not share with all others.
fn tell_apart(subjects: &mut [Subject<'_>]) {
    let words: Vec<_> = subjects.iter().map(|it| words(it.loaded, &it.matrix)).collect();
    for (subject, words_of_subject) in subjects.iter_mut().zip(&words) {
        let own = words_of_subject.iter().filter(|word| {
            let is_shared = words.iter().all(|words| words.contains(word));
            !is_shared && word.0 != Setting::from_flag("pattern")
        });
        subject.apart = own.map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(", ");
    }
}
