//! Every cell of services, operations, CQ modes and polling modes, and fewer that have every two of them, by the tables of
//! settings.

use settings::{CqMode, PollMode, Service};

/// For each service, the words of a sweep over all that it carries, and how many cases that is.
pub fn of_services() -> Vec<(String, usize)> {
    Service::ALL
        .iter()
        .copied()
        .map(|service| cells(service, &ops(service), &cqs(), &polls()))
        .collect()
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

fn ops(service: Service) -> Vec<&'static str> {
    service.ops().iter().map(|op| op.name()).collect()
}

/// The words of a sweep, and how many cases it has.
fn cells(service: Service, ops: &[&str], cqs: &[&str], polls: &[&str]) -> (String, usize) {
    let [op, cq, poll] = [ops, cqs, polls].map(|names| names.join(","));
    let words = format!("--service {service} --op {op} --cq {cq} --poll {poll}");
    (words, ops.len() * cqs.len() * polls.len())
}
