//! Every cell of services, operations, CQ modes and polling modes, and fewer that have every two of them. Which there are is said by the tables of settings; the
//! plan must refuse what no service carries, and nothing else. It must not know devices.

use rocebench::plan::{PlanError, Sweep};
use settings::{CqMode, Given, Op, PollMode, Service};

/// For each service, the words of a sweep over all that it carries, and how many cases that is.
pub fn of_services() -> Vec<(String, usize)> {
    let of_service = |service: Service| cells(service, &ops(service), &cqs(), &polls());
    Service::ALL.iter().copied().map(of_service).collect()
}

/// The same, with each operation in each CQ mode and in each polling mode, and these two modes together for one operation.
pub fn pairs() -> Vec<(String, usize)> {
    let first = &ops(Service::Rc)[..1];
    let mut sweeps = vec![cells(Service::Rc, first, &cqs(), &polls())];
    for service in Service::ALL.iter().copied() {
        for (cq, poll) in cqs().iter().zip(&polls()) {
            sweeps.push(cells(service, &ops(service), &[cq], &[poll]));
        }
    }
    sweeps
}

fn cqs() -> Vec<&'static str> {
    CqMode::ALL.iter().map(|it| it.name()).collect()
}

fn polls() -> Vec<&'static str> {
    PollMode::ALL.iter().map(|it| it.name()).collect()
}

/// What a service carries.
fn ops(service: Service) -> Vec<&'static str> {
    let carried = |op: &&Op| is_carried(service, **op, &cqs(), &polls());
    let ops = Op::ALL.iter().filter(carried);
    ops.map(|op| op.name()).collect()
}

/// The words of a sweep, and how many cases it has.
fn cells(service: Service, ops: &[&str], cqs: &[&str], polls: &[&str]) -> (String, usize) {
    let [op, cq, poll] = [ops, cqs, polls].map(|names| names.join(","));
    let words = format!("--service {service} --op {op} --cq {cq} --poll {poll}");
    (words, ops.len() * cqs.len() * polls.len())
}

/// Whether a service carries an operation, by what the operation needs; the plan says the same in every mode.
#[track_caller]
fn is_carried(service: Service, op: Op, cqs: &[&str], polls: &[&str]) -> bool {
    let profile = op.profile();
    let is_carried = match service {
        Service::Rc => true,
        Service::Uc => !profile.fetches,
        Service::Ud => profile.fills_receives(),
    };
    for (cq, poll) in cqs
        .iter()
        .flat_map(|cq| polls.iter().map(move |it| (cq, it)))
    {
        let given = Given::from([
            ("service", service.name()),
            ("op", op.name()),
            ("cq", *cq),
            ("poll", *poll),
        ]);
        match Sweep::new(&given) {
            Ok(_) => assert!(is_carried, "{op} over {service}"),
            Err(PlanError::NotCarried { .. }) => assert!(!is_carried, "{op} over {service}"),
            Err(other) => panic!("{op} over {service} with {cq} and {poll}: {other}"),
        }
    }
    is_carried
}
