//! Rows of the table of causes that counters and states of nodes show before anything is changed: how a port is connected to its
//! machine and its network, and where and how workers' cores run.

use machine::surroundings::Bond;
use metrics::{CNPS_IGNORED, CNPS_OBEYED, CNPS_SENT, ECN_MARKED};
use results::Metric;
use results::model::PathEventKind;
use results::numbers::fixed;
use settings::PollMode;

use crate::causes::{Cause, USUAL, Weight, bits, known, lossy, usual};
use crate::changes::Change::*;
use crate::effect::Effect::*;
use crate::evidence::{Evidence, Port, metric};
use crate::signs::{LEAST_PAUSES, has_losses};

pub(crate) const ONE_FUNCTION: Cause = Cause {
    id: "one_function",
    weight: |evidence| known(one_function(evidence).is_some(), Weight::Shown, Weight::Against),
    effect: |_, change| bits(change),
    covers: &["bits", "slow_part"],
    sentence: |evidence| {
        one_function(evidence).map_or_else(String::new, |(name, _, part)| {
            format!("{name} uses one of two PCIe functions of its cable: {part}.")
        })
    },
    remedy: |evidence| {
        let other = one_function(evidence).map_or("the other", |(_, other, _)| other);
        format!("Use both functions as rails: add {other} to --device there.")
    },
    ..USUAL
};

/// Seen on GB10 (NVIDIA/dgx-spark-playbooks #108): 8 to 25 Gb/s, although link and PCIe have their speeds.
pub(crate) const HALF_STARTED: Cause = Cause {
    id: "half_started",
    weight: |evidence| known(is_half_started(evidence), Weight::Shown, Weight::Against),
    effect: |_, change| bits(change),
    covers: &["bits", "slow_part", "one_function"],
    sentence: |evidence| {
        format!(
            "The adapter of {} or {} has started with a fault: its link and PCIe have their speeds, no counter tells of loss, and it moves {} Gb/s.",
            evidence.initiator(),
            evidence.target(),
            fixed(evidence.gbit_per_s().unwrap_or(0.0), 1)
        )
    },
    remedy: |_| {
        "Shut both machines down, take their power away for a minute, and start them again."
            .to_owned()
    },
    ..USUAL
};

pub(crate) const BOND_MEMBER: Cause = Cause {
    id: "bond_member",
    weight: |evidence| known(full_member(evidence).is_some(), Weight::Shown, Weight::Against),
    effect: |evidence, change| match change {
        // All may get the same member again.
        MoreQps => MayBeFaster,
        OtherPorts | YetOtherPorts if evidence.case.qps > 1 => MayBeFaster,
        FewerQps => Anything,
        _ => bits(change),
    },
    proof: &[MoreQps],
    covers: &["qp_packets", "qp_messages", "qp_window", "slow_path", "slow_part", "bits"],
    sentence: |evidence| {
        full_member(evidence).map_or_else(String::new, |(name, bond)| {
            format!(
                "All packets use one of the {} members of {}, the bond of {name}: it carries {} Gb/s.",
                bond.members,
                bond.name,
                fixed(bond.gbit_per_s_of_member, 0)
            )
        })
    },
    remedy: |_| format!("{}.", Bond::ADVICE.replacen("use", "Use", 1)),
    ..USUAL
};

pub(crate) const ECN_WITHOUT_CNPS: Cause = Cause {
    id: "ecn_without_cnps",
    weight: |evidence| {
        let pauses = evidence.count(PathEventKind::PausedByNetwork);
        let has_harm = pauses >= LEAST_PAUSES || has_losses(evidence);
        let is_shown = has_harm && ignored_marks(evidence).is_some();
        known(is_shown, Weight::Shown, Weight::Against)
    },
    effect: |_, change| lossy(change),
    covers: &["congestion", "paused_by_network"],
    sentence: |evidence| ignored_marks(evidence).unwrap_or_default(),
    remedy: |_| {
        "Turn DCQCN on for the priority of this traffic, at both ends: the notification point (roce_np) where packets arrive, the reaction point (roce_rp) where they are sent.".to_owned()
    },
    ..USUAL
};

pub(crate) const FAR_NUMA_NODE: Cause = Cause {
    id: "far_numa_node",
    weight: |evidence| known(far_worker(evidence).is_some(), Weight::Shown, Weight::Against),
    effect: |_, _| Anything,
    covers: &["sender_worker", "bits"],
    sentence: |evidence| {
        far_worker(evidence).map_or_else(String::new, |(name, port, core)| {
            let node = port.numa_node.map_or_else(String::new, |node| format!(" {node}"));
            format!("Core {core} of {name}'s workers is far from its adapter, which is on NUMA node{node}.")
        })
    },
    remedy: |_| {
        "Let workers run near the adapter: leave --cores out, or name cores of its NUMA node (`rocebench doctor` shows them).".to_owned()
    },
    ..USUAL
};

pub(crate) const SLEEP_STATES: Cause = Cause {
    id: "sleep_states",
    weight: |evidence| known(idle_exit(evidence).is_some(), Weight::Hinted, Weight::Against),
    effect: |_, change| match change {
        BusyPolling => Faster,
        // The gaps may still be long enough to sleep.
        MoreLoad => MayBeFaster,
        _ => usual(change),
    },
    // Workers that never sleep spare more than idle states.
    proof: &[MoreLoad, BusyPolling],
    sentence: |evidence| {
        let (name, us) = idle_exit(evidence).unwrap_or(("a node", 0));
        format!("Cores of {name} sleep between messages: one takes up to {us} \u{b5}s to wake.")
    },
    remedy: |_| {
        "Use --poll busy, or keep cores from deep idle states (`cpupower idle-set -D 2`)."
            .to_owned()
    },
    ..USUAL
};

/// Nodes of the first flow, the one that posts first, with their ports.
fn ends<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = (&'a str, &'a Port)> {
    let situation = evidence.situation;
    let numbers = evidence.flow().map(|flow| [flow.from, flow.to]);
    numbers.into_iter().flatten().filter_map(move |number| {
        Some((situation.name(number), situation.ports.get(number as usize)?))
    })
}

/// An end with a PCIe link slower than its cable, which has another function that no flow uses: that one, and what is slow.
fn one_function<'a>(evidence: &Evidence<'a>) -> Option<(&'a str, &'a str, &'a str)> {
    let of_flows = evidence.case.flows.iter().flat_map(|flow| [&flow.from_device, &flow.to_device]);
    let used: Vec<&str> = of_flows.flatten().map(|device| device.name.as_str()).collect();
    ends(evidence).find_map(|(name, port)| {
        let other = port.surroundings.other_function.as_deref()?;
        let slow = port.slow_parts.iter().find(|part| part.starts_with("PCIe"))?;
        (!used.contains(&other)).then_some((name, other, slow.as_str()))
    })
}

/// Whether an end's card has two functions a cable, as GB10's has, and the case moves what those that start with a fault do.
fn is_half_started(evidence: &Evidence<'_>) -> bool {
    let is_slow = evidence.gbit_per_s().is_some_and(|rate| (8.0..=25.0).contains(&rate));
    let is_clean = !has_losses(evidence)
        && evidence.count(PathEventKind::PausedByNetwork) == 0
        && evidence.count(PathEventKind::PausedByHost) == 0;
    let mut cards = ends(evidence).filter(|(_, port)| port.surroundings.other_function.is_some());
    is_slow && is_clean && cards.any(|(_, port)| port.link_gbit_per_s >= Some(100.0))
}

/// A bond of which the case moves as much as one member carries, and no more.
fn full_member<'a>(evidence: &Evidence<'a>) -> Option<(&'a str, &'a Bond)> {
    let gbit_per_s = evidence.over_runs(|run| {
        let limits = run.flows.iter().filter_map(|flow| flow.limits.as_ref());
        let of_flows = limits.filter_map(|it| Some(it.share_of_link()? * it.link_gbit_per_s));
        of_flows.reduce(f64::max)
    })?;
    let bonds =
        ends(evidence).filter_map(|(name, port)| Some((name, port.surroundings.bond.as_ref()?)));
    let mut several = bonds.filter(|(_, bond)| bond.members > 1);
    several.find(|(_, bond)| (0.85..1.05).contains(&(gbit_per_s / bond.gbit_per_s_of_member)))
}

/// Fewer marks may be another's.
const LEAST_MARKS: u64 = 10;

/// Where ECN's marks end without an effect.
fn ignored_marks(evidence: &Evidence<'_>) -> Option<String> {
    ends(evidence).find_map(|(name, _)| {
        let [marks, sent, obeyed, ignored] =
            [ECN_MARKED, CNPS_SENT, CNPS_OBEYED, CNPS_IGNORED].map(|names| counted(evidence, name, names));
        if let Some(count) = marks.filter(|count| *count >= LEAST_MARKS && sent == Some(0)) {
            return Some(format!(
                "{name} gets packets with ECN's mark, {count} of them, and sends no congestion notification: nothing slows the sender down."
            ));
        }
        let count = ignored.filter(|count| *count >= LEAST_MARKS && obeyed == Some(0))?;
        Some(format!(
            "{name} ignores congestion notifications, {count} of them: it sends as fast as before."
        ))
    })
}

/// What the one of these counters that grew most at a node grew by in a run; `None` where it has none of them.
fn counted(evidence: &Evidence<'_>, node: &str, names: &[&str]) -> Option<u64> {
    let of_runs = evidence.runs.iter().filter_map(|run| run.node(node)?.counters.as_ref());
    let grown = of_runs.flatten().filter_map(|(counter, grown)| {
        let name = counter.rsplit(':').next()?;
        names.contains(&name).then_some(*grown).flatten()
    });
    grown.reduce(u64::max)
}

/// A worker's core that is on another NUMA node than the adapter.
fn far_worker<'a>(evidence: &Evidence<'a>) -> Option<(&'a str, &'a Port, u32)> {
    ends(evidence).filter(|(_, port)| !port.surroundings.near_cores.is_empty()).find_map(
        |(name, port)| {
            let workers =
                evidence.runs.iter().filter_map(|run| run.node(name)).flat_map(|it| &it.workers);
            let mut cores = workers.filter_map(|worker| worker.core);
            Some((name, port, cores.find(|core| !port.surroundings.near_cores.contains(core))?))
        },
    )
}

/// The end whose cores have an idle state that takes a part of a round trip to leave that matters, and no more than all of it.
fn idle_exit<'a>(evidence: &Evidence<'a>) -> Option<(&'a str, u32)> {
    let may_sleep = evidence.case.poll != PollMode::Busy && metric(evidence.case) == Metric::P50Ns;
    let p50_us = evidence.p50_ns().filter(|_| may_sleep)? / 1e3;
    let matters = 0.2 * p50_us..=p50_us;
    ends(evidence).find_map(|(name, port)| {
        let exits = port.surroundings.idle_exits_us.iter().copied();
        Some((name, exits.filter(|us| matters.contains(&f64::from(*us))).max()?))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use machine::surroundings::Surroundings;
    use plan::Case;
    use results::model::{
        FlowResult, Latency, Limits, NodeResult, PathEvent, Run, Totals, Window, WorkerResult,
    };
    use settings::{Op, Settings, Workload};

    use super::*;
    use crate::evidence::Situation;

    /// The server's port, what its node did, and what the flow moved of a link of 200 Gb/s.
    #[derive(Default)]
    struct MadeUp {
        settings: Settings,
        around: Surroundings,
        slow_part: Option<&'static str>,
        server: NodeResult,
        events: Vec<PathEvent>,
        gbit_per_s: f64,
        p50_us: u64,
    }

    impl MadeUp {
        fn weight(&self, cause: &Cause) -> Weight {
            let mut settings = self.settings.clone();
            settings.fit();
            let case = Case::new("made-up".to_owned(), settings);
            let flow = FlowResult {
                totals: Totals {
                    gbit_per_s: Some(self.gbit_per_s),
                    ..Totals::in_window(1 << 20, 1 << 36, 0, 1.0)
                },
                window: Window { seconds: 1.0, ..Window::default() },
                limits: Some(Limits {
                    link_gbit_per_s: 200.0,
                    share_of_limit: Some(self.gbit_per_s / 200.0),
                    ..Limits::default()
                }),
                latency_ns: Some(Latency { p50: Some(self.p50_us * 1000), ..Latency::default() }),
                ..FlowResult::default()
            };
            let server = NodeResult { name: "server".to_owned(), ..self.server.clone() };
            let runs = [Run {
                complete: true,
                flows: vec![flow],
                nodes: vec![NodeResult::named("client"), server],
                path_events: self.events.clone(),
                ..Run::default()
            }];
            let port = Port {
                numa_node: Some(1),
                link_gbit_per_s: Some(200.0),
                surroundings: self.around.clone(),
                slow_parts: self.slow_part.into_iter().map(str::to_owned).collect(),
                ..Port::default()
            };
            let situation = Situation {
                ports: vec![Port::default(), port],
                names: ["client", "server"].map(str::to_owned).to_vec(),
                ..Situation::default()
            };
            let evidence = Evidence::new(&case, &situation, &runs);
            let weight = (cause.weight)(&evidence);
            if weight > Weight::Open {
                assert!((cause.sentence)(&evidence).contains("server"), "{}", cause.id);
                assert!(!(cause.remedy)(&evidence).is_empty(), "{}", cause.id);
            }
            weight
        }
    }

    fn known_if(condition: bool) -> Weight {
        known(condition, Weight::Shown, Weight::Against)
    }

    #[test]
    fn a_member_of_a_bond_limits_what_moves_as_fast_as_it() {
        let bond = Bond { name: "bond0".to_owned(), members: 2, gbit_per_s_of_member: 100.0 };
        for (gbit_per_s, is_shown) in [(97.0, true), (60.0, false), (120.0, false)] {
            let around = Surroundings { bond: Some(bond.clone()), ..Surroundings::default() };
            let made_up = MadeUp { around, gbit_per_s, ..MadeUp::default() };
            assert_eq!(made_up.weight(&BOND_MEMBER), known_if(is_shown), "{gbit_per_s}");
        }
        let alone = MadeUp { gbit_per_s: 97.0, ..MadeUp::default() };
        assert_eq!(alone.weight(&BOND_MEMBER), Weight::Against);
    }

    #[test]
    fn one_function_of_two_is_shown_where_its_pcie_link_is_slow() {
        let other_function = Some("roceP2p1s0f0".to_owned());
        let around = Surroundings { other_function, ..Surroundings::default() };
        for (slow_part, is_shown) in [
            ("PCIe 32 GT/s x4, 126 Gb/s, below its link of 200 Gb/s", true),
            ("a link of 100 Gb/s, though another node has 200 Gb/s", false),
        ] {
            let made_up =
                MadeUp { around: around.clone(), slow_part: Some(slow_part), ..MadeUp::default() };
            assert_eq!(made_up.weight(&ONE_FUNCTION), known_if(is_shown), "{slow_part}");
        }
    }

    #[test]
    fn a_card_that_started_with_a_fault_moves_a_tenth_and_counts_nothing() {
        let other_function = Some("roceP2p1s0f0".to_owned());
        let around = Surroundings { other_function, ..Surroundings::default() };
        let pauses = PathEvent {
            node: "client".to_owned(),
            kind: PathEventKind::PausedByNetwork,
            count: 900,
            counters: vec!["rx_prio3_pause".to_owned()],
        };
        for (gbit_per_s, events, is_shown) in
            [(13.2, vec![], true), (13.2, vec![pauses], false), (97.0, vec![], false)]
        {
            let made_up =
                MadeUp { around: around.clone(), gbit_per_s, events, ..MadeUp::default() };
            assert_eq!(made_up.weight(&HALF_STARTED), known_if(is_shown), "{gbit_per_s}");
        }
        let other_card = MadeUp { gbit_per_s: 13.2, ..MadeUp::default() };
        assert_eq!(other_card.weight(&HALF_STARTED), Weight::Against);
    }

    #[test]
    fn marks_without_notifications_are_shown_where_they_do_harm() {
        let names = |marked, sent: &str, count| {
            let grown = [(marked, 5_000), (sent, count), ("out_of_sequence", 7)];
            grown.map(|(counter, growth): (&str, u64)| (counter.to_owned(), Some(growth)))
        };
        let paused = |count| PathEvent {
            node: "client".to_owned(),
            kind: PathEventKind::PausedByNetwork,
            count,
            counters: vec!["rx_prio3_pause".to_owned()],
        };
        for (counters, pauses, is_shown) in [
            (names("np_ecn_marked_roce_packets", "np_cnp_sent", 0), 900, true),
            (names("np_ecn_marked_roce_packets", "np_cnp_sent", 40), 900, false),
            (names("np_ecn_marked_roce_packets", "np_cnp_sent", 0), 0, false),
            (names("mlx5_1:cc_rx_ce_pkts", "mlx5_1:cc_tx_cnp_pkts", 0), 900, true),
            (names("received_ecns", "sent_cnps", 0), 900, true),
            // No counter of notifications: not known.
            (names("rx_ecn_marked_pkts", "tx_pkts", 0), 900, false),
            (names("rp_cnp_ignored", "rp_cnp_handled", 0), 900, true),
            (names("rp_cnp_ignored", "rp_cnp_handled", 9), 900, false),
        ] {
            let of_server = Some(BTreeMap::from(counters.clone()));
            let made_up = MadeUp {
                server: NodeResult { counters: of_server, ..NodeResult::default() },
                events: vec![paused(pauses)],
                ..MadeUp::default()
            };
            assert_eq!(made_up.weight(&ECN_WITHOUT_CNPS), known_if(is_shown), "{counters:?}");
        }
    }

    #[test]
    fn a_worker_on_a_core_of_another_node_is_shown() {
        for (core, near_cores, is_shown) in [
            (Some(3), vec![8, 9], true),
            (Some(9), vec![8, 9], false),
            (Some(3), vec![], false),
            (None, vec![8, 9], false),
        ] {
            let worker = WorkerResult { core, ..WorkerResult::default() };
            let made_up = MadeUp {
                around: Surroundings { near_cores, ..Surroundings::default() },
                server: NodeResult { workers: vec![worker], ..NodeResult::default() },
                ..MadeUp::default()
            };
            assert_eq!(made_up.weight(&FAR_NUMA_NODE), known_if(is_shown), "{core:?}");
        }
    }

    #[test]
    fn idle_states_matter_that_a_round_trip_has_room_for() {
        let ping_pong = |poll| Settings {
            op: Workload::Transfer(Op::Send),
            ping_pong: true,
            poll,
            ..Settings::default()
        };
        for (poll, p50_us, expected) in [
            (PollMode::Event, 300, Weight::Hinted),
            (PollMode::Event, 100, Weight::Against),
            (PollMode::Event, 2_000, Weight::Against),
            (PollMode::Busy, 300, Weight::Against),
        ] {
            let made_up = MadeUp {
                settings: ping_pong(poll),
                around: Surroundings { idle_exits_us: vec![2, 133], ..Surroundings::default() },
                p50_us,
                ..MadeUp::default()
            };
            assert_eq!(made_up.weight(&SLEEP_STATES), expected, "{poll:?} {p50_us}");
        }
    }
}
