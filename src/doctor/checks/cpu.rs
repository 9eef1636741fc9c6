//! Checks the frequency governor, which may slow cores down, and irqbalance, which moves interrupts between them.

use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY_GOVERNOR: &str =
    "a governor that slows cores down, or speeds them up late, costs latency and message rate";

const WHY_IRQBALANCE: &str =
    "it moves interrupts between cores during a measurement, which slows workers there";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    vec![governor(subject), irqbalance(subject)]
}

fn governor(subject: &Subject<'_>) -> Finding {
    let machine = subject.machine;
    let folder = "sys/devices/system/cpu";
    let cores = machine.list(folder);
    let governors: Vec<String> = cores
        .iter()
        .filter_map(|core| machine.text(format!("{folder}/{core}/cpufreq/scaling_governor")))
        .collect();
    let others: Vec<&String> = governors.iter().filter(|name| *name != "performance").collect();
    match (governors.len(), others.as_slice()) {
        (0, _) => governor_finding(
            State::Ok,
            "the kernel sets no frequencies here (as in virtual machines)".into(),
        ),
        (_, []) => governor_finding(State::Ok, "performance on all cores".into()),
        (all, [first, ..]) => {
            governor_finding(State::Warning, format!("{first} on {} of {all} cores", others.len()))
                .remedy("sudo cpupower frequency-set -g performance")
        }
    }
}

fn governor_finding(state: State, found: String) -> Finding {
    Finding::new("CPU governor", state, found, WHY_GOVERNOR)
}

fn irqbalance(subject: &Subject<'_>) -> Finding {
    let runs = subject.machine.processes().iter().any(|(_, name)| name == "irqbalance");
    match (runs, subject.has_adapters()) {
        (true, true) => {
            irqbalance_finding(State::Warning, "runs").remedy("sudo systemctl stop irqbalance")
        }
        (true, false) => irqbalance_finding(State::Ok, "runs, which matters only with an adapter"),
        (false, _) => irqbalance_finding(State::Ok, "does not run"),
    }
}

fn irqbalance_finding(state: State, found: &str) -> Finding {
    Finding::new("irqbalance", state, found, WHY_IRQBALANCE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn governors_of_all_cores_count() {
        let files = [
            ("cpu0/cpufreq/scaling_governor", "performance\n"),
            ("cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("cpufreq/boost", "1\n"),
        ];
        let tree = Tree::new(&[]);
        tree.add("sys/devices/system/cpu", &files);
        let found = &findings(&tree, check)[0];
        assert_eq!(outcome(found), (State::Warning, "powersave on 1 of 2 cores"));
        let none = findings(&Tree::new(&[]), check);
        assert!(none.iter().all(|it| it.state == State::Ok));
    }

    #[test]
    fn irqbalance_matters_beside_an_adapter() {
        let tree = tree();
        tree.add("proc/77", &[("comm", "irqbalance\n")]);
        let irqbalance = (State::Warning, "irqbalance".into());
        assert_eq!(states(&findings(&tree, check))[1], irqbalance);
        let bare = Tree::new(&[("proc/77/comm", "irqbalance\n")]);
        assert_eq!(findings(&bare, check)[1].state, State::Ok);
    }
}
