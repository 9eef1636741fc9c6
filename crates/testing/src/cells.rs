//! Every cell of services, operations, CQ modes and polling modes. Which there are is said by the tables of settings; the
//! plan must refuse what no service carries, and nothing else. It must not know devices.

use rocebench::plan::{PlanError, Sweep};
use settings::{CqMode, Given, Op, PollMode, Service};

/// For each service, the words of a sweep over all that it carries, and how many cases that is.
pub fn of_services() -> Vec<(String, usize)> {
    let cqs: Vec<&str> = CqMode::ALL.iter().map(|it| it.name()).collect();
    let polls: Vec<&str> = PollMode::ALL.iter().map(|it| it.name()).collect();
    let of_service = |service: Service| {
        let ops: Vec<&str> = Op::ALL
            .iter()
            .filter(|op| is_carried(service, **op, &cqs, &polls))
            .map(|op| op.name())
            .collect();
        let words = format!(
            "--service {service} --op {} --cq {} --poll {}",
            ops.join(","),
            cqs.join(","),
            polls.join(",")
        );
        (words, ops.len() * cqs.len() * polls.len())
    };
    Service::ALL.iter().copied().map(of_service).collect()
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
