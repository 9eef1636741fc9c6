//! Stages of `rocebench accept`: what each asks of a fabric, and the cases that answer, which a person gets by the same
//! options.

use std::time::Duration;

use settings::{Given, ROWS, Settings};

use crate::check;
use crate::matrix::ROUND;
use crate::nodes::Nodes;
use crate::quick;
use crate::sweep::{Case, PlanError, Sweep};

/// A question to a fabric.
#[derive(Debug)]
pub struct Stage {
    pub name: &'static str,
    /// What it asks, for people.
    pub question: &'static str,
    way: Way,
    /// How long a window is, unless another is asked for.
    window_ms: u64,
    /// Settings that make it what it is, by flag and text.
    own: &'static [(&'static str, &'static str)],
}

/// How a stage finds its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It measures nothing: nodes are examined.
    Doctor,
    /// As `mesh --check`.
    Check,
    /// As `mesh --quick`: what looks bad is measured again.
    Quick,
    /// As a sweep.
    Sweep,
}

/// In the order in which they run: a later one asks what is only worth asking where the earlier ones are well.
pub const STAGES: [Stage; 7] = [
    Stage {
        name: "doctor",
        question: "Is a node broken, or set up in another way than the others?",
        way: Way::Doctor,
        window_ms: 0,
        own: &[],
    },
    Stage {
        name: "preflight",
        question: "Does each path between two rails work?",
        way: Way::Check,
        window_ms: 0,
        own: &[],
    },
    Stage {
        name: "mesh",
        question: "Is a node, cable or path slow, or does it lose packets?",
        way: Way::Quick,
        window_ms: 200,
        own: &[("pattern", "pairs")],
    },
    Stage {
        name: RAILS,
        question: "Are all rails up, and as fast as the others of their node?",
        way: Way::Sweep,
        window_ms: 1000,
        own: &[("pattern", "ring"), ("runs", "3")],
    },
    Stage {
        name: "bisection",
        question: "Does the network carry one half of the nodes to the other?",
        way: Way::Sweep,
        window_ms: 1000,
        own: &[("pattern", "bisection"), ("runs", "3")],
    },
    Stage {
        name: "incast",
        question: "Do many senders to one node lose packets or throughput?",
        way: Way::Sweep,
        window_ms: 1000,
        own: &[("pattern", "incast"), ("runs", "3")],
    },
    Stage {
        name: "ping-pong",
        question: "Is the latency of a node or path higher than that of the others?",
        way: Way::Quick,
        window_ms: 100,
        own: &[
            ("pattern", "pairs"),
            ("ping-pong", "true"),
            ("op", "send"),
            ("size", "64"),
            ("qps", "1"),
        ],
    },
];

/// The stage with several devices of each node.
pub const RAILS: &str = "rails";

impl Stage {
    pub fn of_name(name: &str) -> Option<&'static Stage> {
        STAGES.iter().find(|stage| stage.name == name)
    }

    /// Whether it measures.
    pub fn has_cases(&self) -> bool {
        self.way != Way::Doctor
    }

    /// Whether it moves little, so that its throughput says nothing.
    pub fn is_of_latency(&self) -> bool {
        self.own.contains(&("ping-pong", "true"))
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// Its own settings, then those given that have an effect beside them, then the usual ones, with a window of at least
    /// this length.
    fn given(&self, given: &Given, least_window: Duration) -> Given {
        if self.way == Way::Check {
            return check::with_usual(given.clone());
        }
        let own: Settings = self.own.iter().copied().collect();
        let mut fitting = Given::default();
        for row in ROWS.iter().filter(|row| given.has(row.flag) && row.has_effect(&own)) {
            // It is what the row has taken.
            fitting.set_items(row, given.values(row.flag)).unwrap_or_default();
        }
        let window = format!("{}ms", least_window.as_millis().max(self.window_ms.into()));
        let usual = [("op", "write"), ("qps", "4"), ("warmup", "200ms"), ("duration", &*window)];
        self.own.iter().copied().collect::<Given>().over(fitting.over(usual.into()))
    }

    /// The options by which a person gets its cases.
    pub fn options(&self, given: &Given, least_window: Duration) -> Vec<String> {
        if self.way == Way::Check {
            return vec!["--check".to_owned()];
        }
        let merged = self.given(given, least_window);
        let new = ROWS.iter().filter(|row| merged.has(row.flag) && !given.has(row.flag));
        let mut options: Vec<String> = new
            .map(|row| match merged.values(row.flag).join(",").as_str() {
                "true" => format!("--{}", row.flag),
                text => format!("--{}={text}", row.flag),
            })
            .collect();
        if self.way == Way::Quick {
            options.push("--quick".to_owned());
        }
        options
    }

    /// Its cases between these nodes; of a stage that does not measure none.
    ///
    /// # Errors
    /// What was given does not fit it.
    pub fn cases(
        &self,
        given: &Given,
        nodes: &Nodes,
        least_window: Duration,
    ) -> Result<Vec<Case>, PlanError> {
        if !self.has_cases() {
            return Ok(Vec::new());
        }
        let merged = self.given(given, least_window);
        match self.name {
            "bisection" => halvings(&merged, nodes),
            "incast" => {
                let mut fans = vec!["1".to_owned(), nodes.count().saturating_sub(1).to_string()];
                fans.dedup();
                let mut of_fans = merged;
                if let Some(row) = Settings::row("fan-in") {
                    of_fans.set_items(row, &fans).unwrap_or_default();
                }
                Ok(Sweep::with_flows(&of_fans, &[], nodes.clone())?.cases)
            }
            _ => {
                let sweep = Sweep::with_flows(&merged, &[], nodes.clone())?;
                if self.way == Way::Check {
                    check::check(&sweep)?;
                }
                Ok(sweep.cases)
            }
        }
    }

    /// The longest that cases of it take, with what a run takes besides; `None` where they count messages.
    pub fn longest(&self, cases: &[Case]) -> Option<Duration> {
        let further = if self.way == Way::Quick { quick::most_of(cases) } else { 0 };
        let again = cases.iter().cycle().take(further).map(|case| (case, 1));
        let planned = cases.iter().map(|case| (case, case.most_runs()));
        planned.chain(again).map(|(case, runs)| Some((case.longest()? + BESIDES) * runs)).sum()
    }
}

/// What a round takes besides warm-up and window, about: 64 nodes on the null library take 150 ms (docs/dev/performance.md).
pub const BESIDES: Duration = Duration::from_millis(150);

/// The pattern `bisection` for several ways of halving the nodes: the list in its middle, then in blocks of half the length
/// as long as that goes, and at last each node with its neighbour. Of an odd number of nodes the last has no part.
fn halvings(given: &Given, nodes: &Nodes) -> Result<Vec<Case>, PlanError> {
    let even = nodes.count() / 2 * 2;
    let of_even = match nodes {
        Nodes::Local(_) => Nodes::Local(u32::try_from(even).unwrap_or(u32::MAX)),
        Nodes::Hosts(hosts) => Nodes::Hosts(hosts[..even].to_vec()),
        Nodes::Ranks(names) => Nodes::Ranks(names[..even].to_vec()),
        Nodes::TwoEnds => Nodes::TwoEnds,
    };
    let names = of_even.names();
    let in_middle = Sweep::with_flows(given, &[], of_even)?.cases;
    let blocks = blocks(even);
    let mut cases = Vec::new();
    for (number, &block) in (1..).zip(&blocks) {
        for case in &in_middle {
            let mut way = case.clone();
            if blocks.len() > 1 {
                way.id = format!("{}{ROUND}{number}", case.id);
            }
            for flow in &mut way.flows {
                let from = flow.from as usize;
                let to = if (from / block).is_multiple_of(2) { from + block } else { from - block };
                flow.to = u32::try_from(to).unwrap_or(u32::MAX);
                flow.name = format!("{}>{}", names[from], names[to]);
                flow.to_device = nodes.device(flow.to);
            }
            cases.push(way);
        }
    }
    Ok(cases)
}

/// Lengths of the blocks of nodes that belong to one half and then to the other.
fn blocks(even: usize) -> Vec<usize> {
    let mut lengths = vec![even / 2];
    while let Some(last @ 2..) = lengths.last().copied() {
        lengths.push(if last.is_multiple_of(2) { last / 2 } else { 1 });
    }
    lengths
}

#[cfg(test)]
mod tests {
    use settings::Stop;

    use super::*;

    fn cases(stage: &str, nodes: u32, given: &[(&str, &str)]) -> Vec<Case> {
        let given = given.iter().copied().collect();
        let nodes = Nodes::Local(nodes);
        Stage::of_name(stage).unwrap().cases(&given, &nodes, Duration::ZERO).unwrap()
    }

    fn flows(case: &Case) -> Vec<&str> {
        case.flows.iter().map(|flow| &*flow.name).collect()
    }

    #[test]
    fn nodes_are_halved_in_several_ways() {
        let ways = cases("bisection", 4, &[]);
        let across = ["node0>node2", "node1>node3", "node2>node0", "node3>node1"];
        let beside = ["node0>node1", "node1>node0", "node2>node3", "node3>node2"];
        assert_eq!(ways.iter().map(flows).collect::<Vec<_>>(), [across, beside]);
        assert!(ways[0].id.ends_with("-round1") && ways[1].id.ends_with("-round2"));
        assert_eq!((blocks(64), blocks(6)), (vec![32, 16, 8, 4, 2, 1], vec![3, 1]));
        let [two, three, seven] = [2, 3, 7].map(|nodes| cases("bisection", nodes, &[]));
        assert_eq!((two.len(), flows(&two[0])), (1, vec!["node0>node1", "node1>node0"]));
        assert_eq!((three.len(), seven[1].flows.len()), (1, 6));
        assert!([two, three, seven].iter().flatten().all(|case| Sweep::check(case).is_ok()));
    }

    #[test]
    fn what_is_given_stays_where_it_has_an_effect() {
        let given =
            [("size", "4K"), ("tx-depth", "16"), ("op", "read"), ("qps", "2"), ("iters", "50")];
        let mesh = &cases("mesh", 3, &given)[0];
        assert_eq!((mesh.size_bytes, mesh.tx_depth, mesh.qps), (4096, 16, 2));
        let ping = &cases("ping-pong", 3, &given)[0];
        assert_eq!((ping.size_bytes, ping.qps, ping.ping_pong), (64, 1, true));
        assert_eq!((mesh.stop(), ping.stop()), (ping.stop(), Stop::MessagesPerQp(50)));
        let incast = cases("incast", 5, &given);
        let fans: Vec<usize> = incast.iter().map(|case| case.flows.len()).collect();
        assert_eq!(fans, [1, 4]);
    }

    #[test]
    fn windows_are_as_long_as_many_nodes_of_a_core_need() {
        let mesh = Stage::of_name("mesh").unwrap();
        let options =
            |given: [(&str, &str); 1]| mesh.options(&given.into(), Duration::from_millis(600));
        let usual = options([("op", "write")]);
        assert!(
            ["--duration=600ms", "--pattern=pairs", "--quick"]
                .iter()
                .all(|word| usual.iter().any(|it| it == word))
        );
        assert!(!options([("duration", "2s")]).concat().contains("duration"));
    }

    #[test]
    fn sixty_four_nodes_take_less_than_ten_minutes() {
        let all = STAGES.iter().map(|stage| stage.longest(&cases(stage.name, 64, &[])).unwrap());
        let longest: Duration = all.sum();
        assert!(longest < Duration::from_secs(10 * 60), "{longest:?}");
    }

    #[test]
    fn no_two_cases_of_all_stages_have_one_name() {
        let mut names = std::collections::HashSet::new();
        for stage in &STAGES {
            assert!(cases(stage.name, 6, &[]).into_iter().all(|case| names.insert(case.id)));
        }
    }
}
