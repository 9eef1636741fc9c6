use results::sample::{from_words, has};

use super::*;
use crate::Sweep;
use crate::nodes::MOST_NODES;

fn sweep_of(text: &str) -> Result<Sweep, PlanError> {
    let file = crate::ConfigFile::parse(text, std::path::Path::new("test"), &[]).unwrap();
    Sweep::with_flows(&file.given, &file.flows, file.nodes.unwrap_or_default())
}

fn ids(text: &str) -> String {
    let cases = sweep_of(text).unwrap().cases;
    let ids: Vec<_> = cases.into_iter().map(|case| case.id).collect();
    ids.join(" ")
}

#[test]
fn a_flow_has_its_own_settings_and_the_rest_from_above() {
    let sweep = sweep_of(
        "op = 'write'\nsize = 64\nworkers = 2\niters = 100\n[[flow]]\nname = 'small'\nqps = 12\n\
         [[flow]]\nname = 'bulk'\nop = 'read'\nqps = 4\nsize = '1M'\ntx-depth = 16\nfrom = 'server'\nto = 'client'\n",
    );
    let cases = sweep.unwrap().cases;
    let [case] = <[Case; 1]>::try_from(cases).unwrap();
    let above: Settings = from_words("op=write workers=2 iters=100 size=64");
    let mut small = above.clone();
    small.qps = 12;
    let bulk: Settings = from_words("op=read workers=2 iters=100 size=1M qps=4 tx-depth=16");
    assert_eq!(case.id, "small+bulk");
    assert_eq!(case.settings, above);
    assert_eq!((small.signal_every, bulk.signal_every), (1, 1));
    let small = Flow { name: "small".into(), ..Flow::forward(small) };
    let bulk = Flow { name: "bulk".into(), from: 1, to: 0, ..Flow::forward(bulk) };
    assert_eq!(case.flows, [small, bulk]);
    assert_eq!(Sweep::check(&case), Ok(()));
}

#[test]
fn lists_above_make_cases_for_the_flows_without_a_value() {
    let text =
        "qps = [1, 4]\nsize = [64, '4K']\n[[flow]]\nqps = 2\n[[flow]]\nname = 'b'\nsize = 8\n";
    let expected_ids = "flow1+b-64B-q1 flow1+b-64B-q4 flow1+b-4KiB-q1 flow1+b-4KiB-q4";
    assert_eq!(ids(text), expected_ids);
    let cases = sweep_of(text).unwrap().cases;
    let flows = cases
        .iter()
        .map(|case| [0, 1].map(|flow| (case.flows[flow].qps, case.flows[flow].size_bytes)));
    let small = [[(2, 64), (1, 8)], [(2, 64), (4, 8)]];
    let large = [[(2, 4096), (1, 8)], [(2, 4096), (4, 8)]];
    assert!(flows.eq([small, large].concat()));
}

#[test]
fn ids_name_what_varies_and_at_most_four_flows() {
    let text = "op = ['send', 'read']\nworkers = [1, 2]\npoll = ['busy', 'event']\n[[flow]]\nname = 'x'\ntx-depth = 4";
    let expected = "x-send-w1-busy x-send-w1-event x-send-w2-busy x-send-w2-event x-read-w1-busy x-read-w1-event \
                x-read-w2-busy x-read-w2-event";
    assert_eq!(ids(text), expected);
    assert_eq!(ids(&"[[flow]]\n".repeat(4)), "flow1+flow2+flow3+flow4");
    let more = "flow1+flow2+flow3+flow4+3more";
    assert_eq!(ids(&"[[flow]]\n".repeat(7)), more);
}

#[test]
fn what_no_flow_has_use_for_makes_no_case() {
    // Only the second flow sends in the cases of writes, and receives only it.
    let text =
        "op = ['write', 'read']\ninline = [0, 64]\n[[flow]]\nsize = 64\n[[flow]]\nop = 'read'";
    let expected = "flow1+flow2-write-I0B flow1+flow2-write-I64B flow1+flow2-read";
    assert_eq!(ids(text), expected);
    let cases = sweep_of(text).unwrap().cases;
    let inline = |case: &Case| [0, 1].map(|flow| case.flows[flow].inline_bytes);
    assert!(cases.iter().map(inline).eq([[0, 0], [64, 0], [0, 0]]));
}

#[test]
fn one_flow_is_the_case() {
    let text = "nodes = 'local:3'\n[[flow]]\nfrom = 'node2'\nto = 'node0'\nqps = 3";
    let sweep = sweep_of(text).unwrap();
    let case = &sweep.cases[0];
    assert_eq!((sweep.nodes.count(), case.id.as_str()), (3, "flow1"));
    assert_eq!(case.settings, case.flows[0].settings);
    assert_eq!((case.flows[0].from, case.flows[0].to, case.qps), (2, 0, 3));
}

#[test]
fn what_makes_no_sense_names_the_flow_and_what_mends_it() {
    let errors = [
        "[[flow]]\nqps = 0",
        "post-list = 64\n[[flow]]\n[[flow]]\ntx-depth = 32",
        "[[flow]]\nop = 'read'\ninline = 64",
        "size = 64\n[[flow]]\nsize = 8\n[[flow]]\nsize = 16",
        "traffic-qps = 2\n[[flow]]",
        "op = ['send', 'connect']\n[[flow]]\nop = 'read'\n[[flow]]",
        "[[flow]]\nname = 'x'\nto = 'sever'",
        "nodes = 'local:2'\n[[flow]]\nfrom = 'q'",
        "[[flow]]\nfrom = 'server'",
        "nodes = 'local:3'",
        "pattern = 'ring'\n[[flow]]",
        "nodes = 'local:3'\npattern = 'incast'\nfan-in = 3",
        "nodes = 'local:3'\nfan-in = 3",
        "fan-in = 1",
        "pattern = 'incast:a'",
    ]
    .map(|text| {
        let error = sweep_of(text).unwrap_err();
        let (flag, hint) = (error.flag(), error.hint());
        format!("{text}\n-> {flag}: {error}\n{hint}\n\n")
    });
    insta::assert_snapshot!(errors.concat());
    let flows = MOST_FLOWS + 1;
    let error = sweep_of(&"[[flow]]\n".repeat(flows)).unwrap_err();
    assert_eq!(error, PlanError::TooManyFlows { flows });
}

#[test]
fn the_flows_of_all_cases_are_limited() {
    let list: Vec<String> = (1..=500).map(|it| it.to_string()).collect();
    let flows = "[[flow]]\nsize = '64K'\n".repeat(400);
    let text = format!("tx-depth = [{}]\n{flows}", list.join(","));
    let error = PlanError::TooManyCases { cases: 500, most: 250, longest: "tx-depth" };
    assert_eq!(sweep_of(&text).unwrap_err(), error);
}

#[test]
fn flows_of_a_peer_are_checked() {
    let text = "[[flow]]\n[[flow]]\nfrom = 'server'\nto = 'client'\nfrom-device = 'a'";
    let good = sweep_of(text).unwrap().cases.remove(0);
    assert_eq!(Sweep::check(&good), Ok(()));
    let refused = |damage: fn(&mut Case), words| {
        let mut case = good.clone();
        damage(&mut case);
        let error = Sweep::check(&case).unwrap_err();
        has(error.to_string(), [words]);
        assert!(!error.hint().is_empty());
    };
    fn device(case: &mut Case) -> &mut crate::flow::FlowDevice {
        case.flows[1].from_device.as_mut().unwrap()
    }
    let own_name = "name of its own";
    refused(|case| case.flows.clear(), "no flow");
    refused(|case: &mut Case| case.flows = vec![case.flows[0].clone(); MOST_FLOWS + 1], "too many");
    refused(|case| case.flows[1].name = "flow1".into(), own_name);
    refused(|case| case.flows[0].name = "\u{1b}".into(), own_name);
    refused(|case| case.flows[0].name = "a>b>c".into(), own_name);
    refused(|case| case.flows[0].to = MOST_NODES, "no node");
    refused(|case| device(case).name.clear(), "device");
    refused(|case| device(case).ib_port = Some(0), "device");
    refused(|case: &mut Case| case.flows[1].op = settings::Workload::Connect, "not a flow");
    refused(|case| case.flows[1].workers = 9, "holds for all");
    refused(|case| case.flows[1].qps = 0, "--qps 0");
}

#[test]
fn a_pattern_makes_the_flows_of_its_cases() {
    let sweep = sweep_of(
        "nodes = ['a', 'b/mlx5_1', 'c']\npattern = ['pairs', 'incast']\nfan-in = [1, 2]\nqps = [1, 4]\nduration = '1s'",
    )
    .unwrap();
    // Three nodes have six rounds of one pair; --fan-in makes no cases of them.
    let words: Vec<_> = sweep.cases.iter().map(|it| it.pattern.as_ref().unwrap().word()).collect();
    let count = |pattern: &str| words.iter().filter(|word| **word == pattern).count();
    assert_eq!((count("pairs"), count("incast")), (12, 4));
    let ids: HashSet<_> = sweep.cases.iter().map(|case| &case.id).collect();
    assert_eq!(ids.len(), sweep.cases.len());
    let rounds: Vec<_> = sweep
        .cases
        .iter()
        .filter(|case| case.id.starts_with("send-shared-q1-64KiB-pairs-round"))
        .collect();
    assert!(rounds.iter().all(|case| case.settings == rounds[0].settings));
    let flows = || rounds.iter().flat_map(|case| &case.flows);
    assert_eq!(flows().count(), 6);
    let to_b = flows().find(|flow| flow.name == "a>b").unwrap();
    assert_eq!(to_b.to_device.as_ref().unwrap().name, "mlx5_1");
    assert_eq!(to_b.from_device, None);
    for case in &sweep.cases {
        assert_eq!(Sweep::check(case), Ok(()));
    }
}

#[test]
fn a_share_of_a_pattern_is_of_its_closed_loop() {
    let text = "nodes = 'local:2'\npattern = ['pairs', 'loop']\nrate = '50%'\nduration = '1s'";
    let [pairs, ring] = ["pairs", "loop"].map(|word| format!("send-shared-q1-64KiB-{word}"));
    let expected = format!("{pairs}-round1 {pairs}-R50%-round1 {pairs}-round2 {pairs}-R50%-round2");
    assert_eq!(ids(text), format!("{expected} {ring} {ring}-R50%"));
}

#[test]
fn a_buffer_is_cut_into_the_messages_of_its_steps() {
    let text = "nodes = 'local:4'\npattern = ['ring', 'all-to-all']\nlock-step = true\nsize = '1200'\nqps = 2\nduration = '1s'\n\
                split = ['equal', 'hot-1']";
    let sweep = sweep_of(text).unwrap();
    // Chunks of a ring are equal, so --split makes no cases of it.
    let found: Vec<_> = sweep
        .cases
        .iter()
        .map(|case| {
            assert_eq!(Sweep::check(case), Ok(()));
            assert_eq!(case.size_bytes, 1_200);
            let from_last = case.flows.iter().filter(|flow| flow.from == 3);
            let mut sizes: Vec<_> = from_last.map(|flow| (flow.to, flow.size_bytes)).collect();
            sizes.sort_unstable();
            (case.flows[0].steps, sizes)
        })
        .collect();
    let equal = vec![(0, 150), (1, 150), (2, 150)];
    let hot = vec![(0, 300), (1, 100), (2, 100)];
    assert_eq!(found, [(6, vec![(0, 150)]), (1, equal), (1, hot)]);
}

fn flows(pattern: &str, nodes: u32, given: &[(&str, &str)]) -> Result<Vec<Vec<Link>>, PlanError> {
    let settings = given.iter().copied().collect();
    rounds_of(&pattern.parse().unwrap(), &settings, &Nodes::Local(nodes))
}

#[test]
fn pairs_meet_once_each_way_and_no_node_twice_in_a_round() {
    for count in 2..=17 {
        let rounds = flows("pairs", count, &[]).unwrap();
        assert_eq!(rounds.len() as u32, 2 * (count.next_multiple_of(2) - 1));
        for round in &rounds {
            let nodes: HashSet<u32> = round.iter().flat_map(|(from, to)| [*from, *to]).collect();
            assert_eq!(nodes.len(), 2 * round.len(), "{count}: {round:?}");
            assert_eq!(round.len() as u32, count / 2);
        }
        let links: HashSet<Link> = rounds.iter().flatten().copied().collect();
        assert_eq!(links.len() as u32, count * (count - 1));
        for (from, to) in links {
            assert!(from != to && from.max(to) < count, "{from} to {to}");
        }
    }
}

#[test]
fn traffic_both_ways_needs_no_way_back() {
    let rounds = flows("pairs", 4, &[("bidirectional", "true")]).unwrap();
    let expected = [[(0, 3), (1, 2)], [(1, 3), (2, 0)], [(2, 3), (0, 1)]];
    assert_eq!(rounds, expected);
}

#[test]
fn patterns_of_one_round() {
    let all_to_all = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)];
    for (pattern, count, given, expected) in [
        ("ring", 3, &[][..], &[(0, 1), (1, 2), (2, 0)][..]),
        ("loop", 2, &[], &[(0, 0), (1, 1)]),
        ("incast", 3, &[], &[(1, 0), (2, 0)]),
        ("incast:node1", 3, &[("fan-in", "1")], &[(2, 1)]),
        ("outcast:node2", 3, &[], &[(2, 0), (2, 1)]),
        ("outcast", 4, &[("fan-out", "2")], &[(0, 1), (0, 2)]),
        ("bisection", 4, &[], &[(0, 2), (1, 3), (2, 0), (3, 1)]),
        ("all-to-all", 3, &[], &all_to_all),
    ] {
        let rounds = flows(pattern, count, given).unwrap();
        assert_eq!(rounds, [expected.to_vec()], "{pattern}");
    }
}

#[test]
fn what_the_nodes_do_not_have_is_said() {
    let fan_in = "--fan-in 4 is more than the 3 other nodes";
    let fan_out = "--fan-out 9 is more than the 2 other nodes";
    let odd = "an even number of nodes, not 5";
    for (pattern, count, given, words) in [
        ("incast:node7", 3, &[][..], "no node is named `node7`"),
        ("incast", 4, &[("fan-in", "4")], fan_in),
        ("outcast", 3, &[("fan-out", "9")], fan_out),
        ("bisection", 5, &[], odd),
        ("all-to-all", 65, &[], "4160 flows"),
    ] {
        let error = flows(pattern, count, given).unwrap_err();
        has(error.to_string(), [words]);
        assert!(!error.hint().is_empty());
    }
}
