//! What `mesh --check` found: of each path between two rails whether it works, as it should or not; and rails none of whose
//! paths are as they should be, which are named in place of their paths.

use std::collections::HashMap;
use std::fmt;

use settings::CrossRail;

use super::finding::{Finding, Subject, figure, percent};
use crate::observe::Metric;
use results::model::{CaseResult, CheckRound, FlowConfig, ResultFile};
use statistics::median;

/// Why there is no path to check.
pub const NO_PATHS: &str = "no two nodes have a rail of the same number";

/// All paths that were checked, and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub paths: Vec<Path>,
    /// First how many work.
    pub findings: Vec<Finding>,
}

/// A rail of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rail {
    pub node: String,
    pub device: String,
}

/// A path between two rails, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub ends: [Rail; 2],
    pub is_cross: bool,
    pub verdict: Verdict,
    /// Ids of the cases that checked it.
    cases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// With the rate of its slower way, in Gb/s.
    Works(f64),
    /// It works at so many Gb/s, far below the median.
    Slow { gbit_per_s: f64, median: f64 },
    /// It does not work, and must not.
    KeptApart,
    /// It does not work, for this reason.
    Broken(String),
    /// It works, and must not.
    Leaks,
    /// It could not be checked, for this reason.
    Unknown(String),
}

/// What became of a flow, or of both ways of a path.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Moved(f64),
    Failed(String),
    Unknown(String),
}

impl fmt::Display for Rail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.device)
    }
}

impl Check {
    /// The check of a file; `None` if it has no round of one.
    pub fn of_file(file: &ResultFile) -> Option<Check> {
        let mut rounds = file
            .cases
            .iter()
            .filter_map(|case| Some((case, case.config.check.as_ref()?)))
            .peekable();
        let (_, request) = rounds.peek().copied()?;
        let mut met: Vec<(Path, Outcome)> = Vec::new();
        let mut places: HashMap<[Rail; 2], usize> = HashMap::new();
        for (case, round) in rounds {
            for (index, flow) in case.config.flows.iter().enumerate() {
                let (ends, outcome) = (ends_of(flow), Outcome::of_runs(case, index));
                let place = *places.entry(ends.clone()).or_insert(met.len());
                if place == met.len() {
                    let (is_cross, cases) = (round.is_cross, Vec::new());
                    let path = Path { ends, is_cross, verdict: Verdict::KeptApart, cases };
                    met.push((path, outcome));
                } else {
                    met[place].1 = met[place].1.clone().with_way_back(outcome);
                }
                met[place].0.cases.push(case.id.clone());
            }
        }
        let rates = met.iter().filter_map(|(_, outcome)| outcome.moved());
        let usual = median(&rates.collect::<Vec<f64>>()).unwrap_or(0.0);
        let judged = met.into_iter().map(|(path, outcome)| {
            let must_work = !path.is_cross || request.cross_rail != CrossRail::Forbidden;
            Path { verdict: verdict(outcome, must_work, usual, request), ..path }
        });
        let mut check = Check { paths: judged.collect(), findings: Vec::new() };
        check.findings = check.say(file, request);
        Some(check)
    }

    /// Whether all is as it should be, and something was checked.
    pub fn is_well(&self) -> bool {
        !self.findings.iter().any(Finding::is_problem)
    }

    /// How many paths work, in a sentence.
    pub fn headline(&self) -> &str {
        self.findings.first().map_or("", |finding| &finding.text)
    }

    /// Ids of cases that may say something else when they are run once more.
    pub fn doubtful_cases(&self) -> Vec<String> {
        let doubtful = self
            .paths
            .iter()
            .filter(|path| matches!(path.verdict, Verdict::Slow { .. } | Verdict::Unknown(_)));
        doubtful.flat_map(|path| path.cases.iter().cloned()).collect()
    }

    fn count(&self, is: fn(&Path) -> bool) -> usize {
        self.paths.iter().filter(|path| is(path)).count()
    }

    fn say(&self, file: &ResultFile, request: &CheckRound) -> Vec<Finding> {
        let mut problems: Vec<Finding> = file
            .nodes
            .iter()
            .filter(|node| !node.left_out.is_empty())
            .map(|node| {
                let text = format!("{}: {}. Bring it up.", node.name, node.left_out.join("; "));
                let subject = Subject { nodes: vec![node.name.clone()], ..Subject::default() };
                Finding::problem("rail_left_out", subject, text)
            })
            .collect();
        for kind in Kind::ALL {
            problems.extend(self.of_kind(kind));
        }
        let mut all = vec![self.summary(file.nodes.len(), request, !problems.is_empty())];
        all.append(&mut problems);
        all
    }

    fn summary(&self, nodes: usize, request: &CheckRound, has_problems: bool) -> Finding {
        let kept_apart = self.count(|path| path.verdict == Verdict::KeptApart);
        let leaking = self.count(|path| path.verdict == Verdict::Leaks);
        let all = self.paths.len() - kept_apart - leaking;
        let slow = self.count(|path| matches!(path.verdict, Verdict::Slow { .. }));
        let works = slow + self.count(|path| matches!(path.verdict, Verdict::Works(_)));
        let mut text =
            format!("{} of {} paths between {nodes} nodes work", thousands(works), thousands(all));
        if slow > 0 {
            text += &format!(
                ", {} of them below {} % of the median",
                thousands(slow),
                request.slow_below_percent
            );
        }
        if request.cross_rail == CrossRail::Forbidden && kept_apart + leaking > 0 {
            text += &format!(
                "; {} of {} between different rails are kept apart",
                thousands(kept_apart),
                thousands(kept_apart + leaking)
            );
        }
        if self.paths.is_empty() {
            text = format!(
                "Nothing was checked: {NO_PATHS}. Give nodes and rails with --nodes and --device"
            );
        }
        let is_well = !has_problems && all > 0;
        let (id, subject) = ("check", Subject::default());
        let finding = if is_well {
            Finding::note(id, subject, text + ".")
        } else {
            Finding::problem(id, subject, text + ".")
        };
        let counts = [("working", works), ("slow", slow), ("leaking", leaking), ("of", all)];
        counts.into_iter().fold(finding, |finding, (name, count)| finding.with(name, count))
    }

    /// What is not well in one way: rails of which all paths are, where that is several, and the other paths.
    fn of_kind(&self, kind: Kind) -> Vec<Finding> {
        let mut of_rails: HashMap<&Rail, (usize, Vec<usize>)> = HashMap::new();
        let may_be = self.paths.iter().enumerate().filter(|(_, path)| kind.may_be(path));
        for (index, path) in may_be {
            for end in &path.ends {
                let (count, own) = of_rails.entry(end).or_default();
                *count += 1;
                own.extend(Some(index).filter(|_| kind.is(&path.verdict)));
            }
        }
        let mut whole: Vec<(&Rail, Vec<usize>)> = of_rails
            .into_iter()
            .filter(|(_, (count, own))| *count > 1 && own.len() == *count)
            .map(|(rail, (_, own))| (rail, own))
            .collect();
        whole.sort_by_key(|(rail, own)| (own[0], *rail));
        let mut is_told = vec![false; self.paths.len()];
        let mut found = Vec::new();
        for (rail, own) in whole {
            own.iter().for_each(|index| is_told[*index] = true);
            let text = kind.of_rail(rail, own.len(), &self.paths[own[0]].verdict);
            let subject = subject(std::slice::from_ref(rail));
            found.push(Finding::problem(kind.ids()[0], subject, text).with("paths", own.len()));
        }
        let others = self.paths.iter().zip(is_told).filter(|(_, is_told)| !is_told);
        found.extend(others.filter(|(path, _)| kind.is(&path.verdict)).filter_map(|(path, _)| {
            Some(Finding::problem(kind.ids()[1], subject(&path.ends), path.fault()?))
        }));
        found
    }
}

fn subject(rails: &[Rail]) -> Subject {
    let names = rails.iter().map(|rail| (rail.node.clone(), rail.device.clone()));
    Subject { rails: names.collect(), ..Subject::default() }
}

fn verdict(outcome: Outcome, must_work: bool, usual: f64, request: &CheckRound) -> Verdict {
    let least = usual * f64::from(request.slow_below_percent) / 100.0;
    match outcome {
        Outcome::Moved(_) if !must_work => Verdict::Leaks,
        Outcome::Failed(_) if !must_work => Verdict::KeptApart,
        Outcome::Moved(gbit_per_s) if gbit_per_s < least => {
            Verdict::Slow { gbit_per_s, median: usual }
        }
        Outcome::Moved(gbit_per_s) => Verdict::Works(gbit_per_s),
        Outcome::Failed(why) => Verdict::Broken(why),
        Outcome::Unknown(why) => Verdict::Unknown(why),
    }
}

/// The ends of the path that a flow takes there or back.
fn ends_of(flow: &FlowConfig) -> [Rail; 2] {
    let devices = match flow.over_rails() {
        Some((_, rails)) => rails,
        None => [&flow.from_device, &flow.to_device].map(|it| it.as_deref().unwrap_or_default()),
    };
    let [from, to] = devices.map(str::to_owned);
    let mut ends = [(&flow.from, from), (&flow.to, to)]
        .map(|(node, device)| Rail { node: node.clone(), device });
    ends.sort();
    ends
}

impl Outcome {
    /// Of a flow of a case: a failure in any run stays, and otherwise the best run counts.
    fn of_runs(case: &CaseResult, index: usize) -> Outcome {
        let runs = case.runs.iter().map(|run| {
            let moved = run.flows.get(index);
            match (moved.and_then(|flow| flow.failure.as_ref()), &run.failure) {
                (Some(why), _) => Outcome::Failed(why.message.clone()),
                (None, Some(why)) => Outcome::Unknown(why.message.clone()),
                (None, None) if run.complete => {
                    Outcome::Moved(Metric::GbitPerS.of(run, moved).unwrap_or(0.0))
                }
                (None, None) => Outcome::Unknown("the run is not complete".to_owned()),
            }
        });
        runs.reduce(|one, other| match (one, other) {
            (Outcome::Moved(one), Outcome::Moved(other)) => Outcome::Moved(one.max(other)),
            (failed @ Outcome::Failed(_), _) | (_, failed @ Outcome::Failed(_)) => failed,
            (moved @ Outcome::Moved(_), _) | (_, moved) => moved,
        })
        .unwrap_or_else(|| Outcome::Unknown("it was not run".to_owned()))
    }

    /// Of both ways of a path: the worse.
    fn with_way_back(self, back: Outcome) -> Outcome {
        match (self, back) {
            (Outcome::Moved(one), Outcome::Moved(other)) => Outcome::Moved(one.min(other)),
            (failed @ Outcome::Failed(_), _) | (_, failed @ Outcome::Failed(_)) => failed,
            (unknown @ Outcome::Unknown(_), _) | (_, unknown) => unknown,
        }
    }

    fn moved(&self) -> Option<f64> {
        match self {
            Outcome::Moved(gbit_per_s) => Some(*gbit_per_s),
            Outcome::Failed(_) | Outcome::Unknown(_) => None,
        }
    }
}

impl Path {
    /// What is wrong with it, in a sentence or two; `None` if nothing is.
    pub fn fault(&self) -> Option<String> {
        let [one, other] = &self.ends;
        Some(match &self.verdict {
            Verdict::Works(_) | Verdict::KeptApart => return None,
            Verdict::Broken(why) => {
                format!("{one} to {other} does not work: {why}. Look at the path.")
            }
            Verdict::Leaks => {
                format!("{one} reaches {other}, and must not. Look at the routes between rails.")
            }
            Verdict::Slow { gbit_per_s, median } => format!(
                "{one} to {other} is slow: {}. Look at the path.",
                slower(*gbit_per_s, *median)
            ),
            Verdict::Unknown(why) => format!("{one} to {other} could not be checked: {why}."),
        })
    }

    /// Its ends.
    pub fn name(&self) -> String {
        let [one, other] = &self.ends;
        format!("{one} to {other}")
    }
}

fn slower(gbit_per_s: f64, median: f64) -> String {
    let [own, usual] = [gbit_per_s, median].map(|rate| figure(Metric::GbitPerS, rate));
    format!("{own}, {} less than the median {usual}", percent(1.0 - gbit_per_s / median))
}

/// In what way a path is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Broken,
    Leaks,
    Slow,
    Unknown,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Broken, Kind::Leaks, Kind::Slow, Kind::Unknown];

    /// Ids of its findings, of a rail and of a path.
    fn ids(self) -> [&'static str; 2] {
        match self {
            Kind::Broken => ["broken_rail", "broken_path"],
            Kind::Leaks => ["leaking_rail", "leaking_path"],
            Kind::Slow => ["slow_rail", "slow_path"],
            Kind::Unknown => ["unchecked_rail", "unchecked_path"],
        }
    }

    fn is(self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Works(_) | Verdict::KeptApart => false,
            Verdict::Broken(_) => self == Kind::Broken,
            Verdict::Leaks => self == Kind::Leaks,
            Verdict::Slow { .. } => self == Kind::Slow,
            Verdict::Unknown(_) => self == Kind::Unknown,
        }
    }

    /// Whether a path is among those that could be so.
    fn may_be(self, path: &Path) -> bool {
        let must_not = matches!(path.verdict, Verdict::Leaks | Verdict::KeptApart);
        must_not == (self == Kind::Leaks)
    }

    /// What is said of a rail all of whose paths are so, the first of them with this verdict.
    fn of_rail(self, rail: &Rail, paths: usize, first: &Verdict) -> String {
        match first {
            Verdict::Broken(why) => format!(
                "{rail} reaches none of its {paths} peers: {why}. Look at its port, cable and switch."
            ),
            Verdict::Slow { gbit_per_s, median } => format!(
                "{rail} is slow to all of its {paths} peers: {}. Look at its port and cable.",
                slower(*gbit_per_s, *median)
            ),
            Verdict::Unknown(why) => {
                format!("{rail} could not be checked with its {paths} peers: {why}.")
            }
            Verdict::Leaks | Verdict::Works(_) | Verdict::KeptApart => format!(
                "{rail} reaches all {paths} other rails of other nodes, and must not. Look at the routes \
                 between rails."
            ),
        }
    }
}

/// `2,016`.
fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use results::model::{CheckRound, Failure, Node};
    use results::sample::{has, mesh::Mesh};

    use super::*;

    /// Pairs of so many nodes, each way with one rate, as rounds of a check.
    fn checked(nodes: usize, cross_rail: CrossRail, is_cross: bool) -> ResultFile {
        let mut file = Mesh::quiet(nodes).runs(1).pairs();
        for case in &mut file.cases {
            case.config.check = Some(CheckRound { cross_rail, is_cross, slow_below_percent: 50 });
        }
        file
    }

    /// Changes each flow of which `is` says so, by the names of its nodes.
    fn change(
        file: &mut ResultFile,
        is: impl Fn(&str, &str) -> bool,
        change: impl Fn(&mut results::model::FlowResult),
    ) {
        let runs = file.cases.iter_mut().flat_map(|case| &mut case.runs);
        let flows = runs.flat_map(|run| &mut run.flows);
        flows.filter(|flow| is(&flow.from, &flow.to)).for_each(change);
    }

    fn fail(flow: &mut results::model::FlowResult) {
        let message = "RETRY_EXC_ERR".to_owned();
        flow.failure = Some(Failure { message, hint: None });
    }

    #[track_caller]
    fn says(file: &ResultFile, lines: &[&str]) -> Check {
        let check = Check::of_file(file).unwrap();
        let found: Vec<&str> = check.findings.iter().map(|finding| &*finding.text).collect();
        assert_eq!(found.len(), lines.len(), "{found:?}");
        for (text, words) in found.iter().zip(lines) {
            has(text, [words]);
        }
        assert_eq!(check.is_well(), lines.len() == 1 && !check.paths.is_empty());
        check
    }

    #[test]
    fn a_whole_fabric_is_one_sentence() {
        says(
            &checked(64, CrossRail::Ignore, false),
            &["2,016 of 2,016 paths between 64 nodes work."],
        );
        assert_eq!(Check::of_file(&Mesh::quiet(3).pairs()), None);
    }

    #[test]
    fn a_dead_rail_is_named_once_and_a_dead_path_by_its_ends() {
        let mut file = checked(6, CrossRail::Ignore, false);
        change(&mut file, |from, to| from == "node2" || to == "node2", fail);
        change(&mut file, |from, to| (from, to) == ("node4", "node6"), fail);
        let check = says(
            &file,
            &[
                "9 of 15 paths between 6 nodes work.",
                "node2/mlx5_0 reaches none of its 5 peers: RETRY_EXC_ERR. Look",
                "does not work: RETRY_EXC_ERR. Look at the path.",
            ],
        );
        assert!(check.doubtful_cases().is_empty());
    }

    #[test]
    fn slow_is_below_half_of_the_median_and_checked_again() {
        let mut file = checked(4, CrossRail::Ignore, false);
        let slow = |flow: &mut results::model::FlowResult| {
            flow.totals.gbit_per_s = flow.totals.gbit_per_s.map(|rate| rate * 0.49);
        };
        change(&mut file, |from, to| (from, to) == ("node1", "node3"), slow);
        let check = says(
            &file,
            &["6 of 6 paths between 4 nodes work, 1 of them below 50 %", "51 % less than"],
        );
        let doubtful = check.doubtful_cases();
        assert_eq!(doubtful.len(), 2, "there and back");
        for case in file.cases.iter_mut().filter(|case| doubtful.contains(&case.id)) {
            let mut again = case.runs[0].clone();
            again.flows.iter_mut().for_each(|flow| flow.totals.gbit_per_s = Some(9.4));
            case.runs.push(again);
        }
        says(&file, &["6 of 6 paths between 4 nodes work."]);
    }

    #[test]
    fn between_rails_what_must_not_work_fails_where_it_does() {
        let mut file = checked(3, CrossRail::Forbidden, true);
        change(&mut file, |from, to| [from, to] != ["node1", "node2"], fail);
        for case in &mut file.cases {
            for flow in &mut case.config.flows {
                flow.name += "@a>b";
                (flow.from_device, flow.to_device) = (Some("a".into()), Some("b".into()));
            }
        }
        let same = checked(3, CrossRail::Forbidden, false);
        file.cases.splice(0..0, same.cases);
        says(
            &file,
            &[
                "3 of 3 paths between 3 nodes work; 5 of 6 between different rails are kept apart.",
                "node1/a reaches node2/b, and must not.",
            ],
        );
        file.cases.iter_mut().filter_map(|case| case.config.check.as_mut()).for_each(|round| {
            round.cross_rail = CrossRail::Required;
        });
        has(Check::of_file(&file).unwrap().headline(), ["4 of 9 paths"]);
    }

    #[test]
    fn nothing_checked_is_a_failure_and_so_is_what_was_left_out_or_not_run() {
        let mut file = checked(3, CrossRail::Ignore, false);
        let left_out = vec!["mlx5_1 port 1 is DOWN".to_owned()];
        file.nodes[1] = Node { left_out, ..file.nodes[1].clone() };
        says(&file, &["3 of 3", "node2: mlx5_1 port 1 is DOWN."]);
        file.nodes[1].left_out.clear();
        for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.complete = false;
        }
        let text = "could not be checked with its 2 peers: the run is not complete";
        assert_eq!(says(&file, &["0 of 3", text, text, text]).doubtful_cases().len(), 6);
        file.cases.truncate(1);
        file.cases[0].config.flows.clear();
        assert!(!says(&file, &["Nothing was checked"]).is_well());
    }
}
