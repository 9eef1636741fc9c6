//! How a search goes, in a laboratory whose figures stand in a table.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use machine::surroundings::Bond;
use plan::Case;
use results::model::{Certainty, Diagnosis, FlowResult, Latency, Limits, Run, Totals};
use settings::{Mtu, Op, PollMode, Rate, Settings, Workload};
use why::{Change, Laboratory, Port, Request, Situation, Step, diagnose, planned};

const RUN: Duration = Duration::from_millis(300);

/// Speeds of changes, as parts of that of the case; the others are as fast as it.
type Table = &'static [(&'static str, f64)];

/// A limit that no row has: messages a second of an adapter.
const MESSAGES: Table = &[("half_the_size", 0.5)];

#[derive(Default)]
struct TableLaboratory {
    table: Table,
    share_of_link: f64,
    /// Runs scatter by so much, or by a percent, and changes are as the table says for so many of their runs.
    lucky: Option<(f64, u32)>,
    /// The change that its nodes cannot do.
    refused: Option<&'static str>,
    /// The run in which a node dies.
    dies_in: Option<u32>,
    runs: u32,
    /// Those of changes that the table names.
    changed_runs: u32,
    batches: Vec<Vec<Change>>,
}

#[derive(Debug, PartialEq)]
struct Died;

fn is_changed(case: &Case, change: &str) -> bool {
    case.id == format!("the-case-{change}")
}

impl Laboratory for TableLaboratory {
    type Error = Died;

    fn run(&mut self, case: &Case) -> Result<Run, Died> {
        self.runs += 1;
        if self.dies_in == Some(self.runs) {
            return Err(Died);
        }
        let changed = self.table.iter().find(|(change, _)| is_changed(case, change));
        let (scatters, lucky_runs) = self.lucky.unwrap_or((0.01, u32::MAX));
        self.changed_runs += u32::from(changed.is_some());
        let changed = changed.filter(|_| self.changed_runs <= lucky_runs);
        let scatter = 1.0 + scatters * f64::from(self.runs * 7 % 5) / 5.0;
        let speed = scatter * changed.map_or(1.0, |(_, part)| *part);
        let gbit_per_s = 20.0 * speed;
        let p50 = Some((300_000.0 / speed) as u64);
        let flow = FlowResult {
            name: case.flows[0].name.clone(),
            totals: Totals { gbit_per_s: Some(gbit_per_s), ..Totals::in_window(1, 1, 0, 0.3) },
            latency_ns: (!case.is_closed_loop()).then(|| Latency { p50, ..Latency::default() }),
            limits: Some(Limits {
                link_gbit_per_s: 200.0,
                share_of_limit: Some(self.share_of_link),
                ..Limits::default()
            }),
            ..FlowResult::default()
        };
        Ok(Run { complete: true, flows: vec![flow], ..Run::default() })
    }

    fn refusal(&self, case: &Case) -> Option<String> {
        let is_refused = self.refused.is_some_and(|change| is_changed(case, change));
        is_refused.then(|| "server: its device has no room for it".to_owned())
    }

    fn spent(&self) -> Duration {
        RUN * self.runs
    }

    fn announce(&mut self, step: &Step<'_>) {
        if let Step::Changes { changes, .. } = step {
            self.batches.push(changes.to_vec());
        }
    }
}

fn the_case() -> Case {
    let mut settings = Settings {
        op: Workload::Transfer(Op::Write),
        mtu: Mtu::try_from(2048).ok(),
        qps: 4,
        tx_depth: 32,
        ..Settings::default()
    };
    settings.fit();
    Case::new("the-case".to_owned(), settings)
}

fn situation() -> Situation {
    let port = Port { mtu_bytes: 4096, max_wrs: 4096, cores: 8, ..Port::default() };
    Situation {
        ports: vec![port.clone(), port],
        names: vec!["client".to_owned(), "server".to_owned()],
        ..Situation::default()
    }
}

fn diagnosed(laboratory: &mut TableLaboratory, runs: u32) -> (Diagnosis, Result<(), Died>) {
    let request = Request { budget: RUN * runs, run: RUN };
    diagnose(laboratory, &the_case(), &situation(), request)
}

#[test]
fn what_one_change_alone_explains_is_proven() {
    let table = &[("twice_the_depth", 1.9), ("half_the_depth", 0.5)];
    let mut laboratory = TableLaboratory { table, ..TableLaboratory::default() };
    let (diagnosis, ended) = diagnosed(&mut laboratory, 200);
    assert_eq!((ended, diagnosis.certainty), (Ok(()), Certainty::Proven), "{diagnosis:#?}");
    assert_eq!(diagnosis.causes[0].id, "bytes_in_flight");
    assert_eq!(diagnosis.causes[0].proven_by, ["twice_the_depth"]);
    // The first changes tell most causes apart.
    let first = &laboratory.batches[0];
    assert!(first.len() == 3 && first.contains(&Change::MoreQps), "{first:?}");
}

#[test]
fn a_proof_by_chance_does_not_come_out_again() {
    let table = &[("other_connect", 2.0)];
    // The way of connecting is faster in its first eight rounds, or in all of them.
    for (rounds, certainty, first_cause) in
        [(8, Certainty::Unknown, None), (u32::MAX, Certainty::Proven, Some("way_of_connecting"))]
    {
        let lucky = Some((1.0, rounds));
        let mut laboratory = TableLaboratory { table, lucky, ..TableLaboratory::default() };
        let (diagnosis, _) = diagnosed(&mut laboratory, 400);
        assert_eq!(diagnosis.certainty, certainty, "{diagnosis:#?}");
        assert_eq!(diagnosis.causes.first().map(|cause| &*cause.id), first_cause);
        let batches = laboratory.batches.iter().flatten();
        let measured = batches.filter(|change| **change == Change::OtherConnect).count();
        let shown = diagnosis.trials.iter().filter(|trial| trial.id == "other_connect").count();
        assert_eq!((measured, shown), (2, 1));
    }
}

#[test]
fn a_change_that_nodes_refuse_is_left_out_and_named() {
    let refused = Some("more_qps");
    let mut laboratory = TableLaboratory { table: MESSAGES, refused, ..TableLaboratory::default() };
    let (diagnosis, _) = diagnosed(&mut laboratory, 200);
    assert_eq!(diagnosis.left_out.len(), 1);
    assert_eq!(diagnosis.left_out[0].change, Change::MoreQps.words());
    assert_eq!(diagnosis.left_out[0].why, "server: its device has no room for it");
    assert!(diagnosis.trials.iter().all(|trial| trial.id != "more_qps"), "{diagnosis:#?}");
    let (case, at) = (the_case(), situation());
    let (changes, left_out) = planned(&why::Evidence::new(&case, &at, &[]), &laboratory);
    assert!(changes.iter().all(|(change, _)| *change != Change::MoreQps));
    assert_eq!(left_out, diagnosis.left_out);
}

#[test]
fn what_was_found_before_a_node_died_is_kept() {
    // Two runs of the case, and eight rounds of it and three changes.
    let first_batch = 2 + 8 * 4;
    for (dies_in, certainty, trials) in
        [(2, Certainty::NotMeasured, 0), (first_batch + 5, Certainty::Unknown, 3)]
    {
        let dies_in = Some(dies_in);
        let mut laboratory =
            TableLaboratory { table: MESSAGES, dies_in, ..TableLaboratory::default() };
        let (diagnosis, ended) = diagnosed(&mut laboratory, 200);
        assert_eq!((ended, diagnosis.certainty), (Err(Died), certainty), "{diagnosis:#?}");
        let measured = diagnosis.trials.iter().filter(|trial| trial.rounds == 8).count();
        assert_eq!(measured, trials, "{diagnosis:#?}");
    }
}

#[test]
fn a_small_budget_ends_with_what_is_known() {
    let request = Request { budget: Duration::ZERO, run: RUN };
    let least = (request.least_budget().as_nanos() / RUN.as_nanos()) as u32;
    for (runs, trials) in [(least - 1, 0), (least, 1), (2 * least, 3)] {
        let mut laboratory = TableLaboratory { table: MESSAGES, ..TableLaboratory::default() };
        let (diagnosis, ended) = diagnosed(&mut laboratory, runs);
        assert_eq!((ended, diagnosis.certainty), (Ok(()), Certainty::Unknown));
        assert_eq!(diagnosis.trials.len(), trials, "{runs}: {diagnosis:#?}");
        assert!(diagnosis.ended_by.unwrap().contains("--budget"));
        assert!(laboratory.runs <= runs, "{} of {runs}", laboratory.runs);
    }
}

#[test]
fn at_the_link_nothing_is_tried() {
    let mut laboratory = TableLaboratory { share_of_link: 0.97, ..TableLaboratory::default() };
    let (diagnosis, _) = diagnosed(&mut laboratory, 200);
    assert_eq!((diagnosis.certainty, laboratory.runs), (Certainty::AtTheLink, 2));
    assert!(diagnosis.trials.is_empty() && laboratory.batches.is_empty());
}

#[test]
fn where_no_cause_explains_it_the_answer_is_what_helps() {
    let table = &[("more_qps", 1.5), ("smaller_mtu", 1.5)];
    let mut laboratory = TableLaboratory { table, ..TableLaboratory::default() };
    let (diagnosis, _) = diagnosed(&mut laboratory, 400);
    assert_eq!((diagnosis.certainty, diagnosis.ended_by), (Certainty::Unknown, None));
    for change in [Change::MoreQps, Change::SmallerMtu] {
        assert!(diagnosis.answer.contains(change.words()), "{}", diagnosis.answer);
    }
    // Every change that the case has was tried.
    let (case, at) = (the_case(), situation());
    let (changes, _) = planned(&why::Evidence::new(&case, &at, &[]), &laboratory);
    let tried = |change: &Change| diagnosis.trials.iter().any(|trial| trial.id == change.id());
    let missing: Vec<_> = changes.iter().filter(|(change, _)| !tried(change)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

const REQUEST: Request = Request { budget: Duration::from_secs(120), run: RUN };

/// The client's port is that of a bond of two, of which it moves what one carries.
#[test]
fn more_qps_prove_that_one_member_of_a_bond_carries_all() {
    let mut at = situation();
    let bond = Bond { name: "bond0".to_owned(), members: 2, gbit_per_s_of_member: 100.0 };
    at.ports[0].surroundings.bond = Some(bond);
    let table = &[("more_qps", 1.9)];
    let mut laboratory =
        TableLaboratory { table, share_of_link: 0.48, ..TableLaboratory::default() };
    let (diagnosis, _) = diagnose(&mut laboratory, &the_case(), &at, REQUEST);
    assert_eq!(diagnosis.certainty, Certainty::Proven, "{diagnosis:#?}");
    let [cause] = diagnosis.causes.as_slice() else { panic!("{diagnosis:#?}") };
    assert_eq!(
        (&*cause.id, cause.proven_by.as_slice()),
        ("bond_member", &["more_qps".to_owned()][..])
    );
}

/// At a fixed rate a message waits for a core to wake, less often at twice the rate.
#[test]
fn twice_the_load_tells_idle_states_from_workers_that_sleep() {
    let mut settings =
        Settings { rate: Rate::Messages(1000), poll: PollMode::Event, ..the_case().settings };
    settings.fit();
    let case = Case::new("the-case".to_owned(), settings);
    let mut at = situation();
    at.may_load_more = true;
    at.ports[1].surroundings.idle_exits_us = vec![2, 133];
    for (table, expected) in [
        (&[("busy_polling", 2.0), ("more_load", 1.5)] as Table, "sleep_states"),
        (&[("busy_polling", 2.0)], "sleeping_worker"),
    ] {
        let mut laboratory = TableLaboratory { table, ..TableLaboratory::default() };
        let (diagnosis, _) = diagnose(&mut laboratory, &case, &at, REQUEST);
        let mut ids = diagnosis.causes.iter().map(|cause| &*cause.id);
        assert!(ids.any(|id| id == expected), "{diagnosis:#?}");
    }
}
