use super::super::sweep::Sweep;
use super::*;
use crate::plan::node_list::MOST_NODES;

fn sweep_of(text: &str) -> Result<Sweep, PlanError> {
    let file = crate::plan::ConfigFile::parse(text, std::path::Path::new("test"), &[]).unwrap();
    Sweep::with_flows(&file.given, &file.flows, file.nodes.unwrap_or_default())
}

fn ids(text: &str) -> Vec<String> {
    let cases = sweep_of(text).unwrap().cases;
    cases.into_iter().map(|case| case.id).collect()
}

#[test]
fn a_flow_has_its_own_settings_and_the_rest_from_above() {
    let sweep = sweep_of(
        "op = 'write'\nsize = 64\nworkers = 2\niters = 100\n[[flow]]\nname = 'small'\nqps = 12\n\
         [[flow]]\nname = 'bulk'\nop = 'read'\nqps = 4\nsize = '1M'\ntx-depth = 16\nfrom = 'server'\nto = 'client'\n",
    );
    let cases = sweep.unwrap().cases;
    let [case] = cases.as_slice() else {
        panic!("{cases:?}")
    };
    let above = [
        ("op", "write"),
        ("workers", "2"),
        ("iters", "100"),
        ("size", "64"),
    ];
    let mut small = Settings::from(above);
    small.qps = 12;
    let bulk = Settings::from([
        ("op", "read"),
        ("workers", "2"),
        ("iters", "100"),
        ("size", "1M"),
        ("qps", "4"),
        ("tx-depth", "16"),
    ]);
    assert_eq!(case.id, "small+bulk");
    assert_eq!(case.settings, Settings::from(above));
    assert_eq!((small.signal_every, bulk.signal_every), (64, 1));
    let small = Flow {
        name: "small".into(),
        ..Flow::forward(small)
    };
    let bulk = Flow {
        name: "bulk".into(),
        from: 1,
        to: 0,
        ..Flow::forward(bulk)
    };
    assert_eq!(case.flows, [small, bulk]);
    assert_eq!(Sweep::check(case), Ok(()));
}

#[test]
fn lists_above_make_cases_for_the_flows_without_a_value() {
    let text =
        "qps = [1, 4]\nsize = [64, '4K']\n[[flow]]\nqps = 2\n[[flow]]\nname = 'b'\nsize = 8\n";
    assert_eq!(
        ids(text),
        [
            "flow1+b-64B-q1",
            "flow1+b-64B-q4",
            "flow1+b-4KiB-q1",
            "flow1+b-4KiB-q4"
        ]
    );
    let told = |flow: &Flow| (flow.qps, flow.size_bytes);
    let cases = sweep_of(text).unwrap().cases;
    let told: Vec<_> = cases
        .iter()
        .map(|case| (told(&case.flows[0]), told(&case.flows[1])))
        .collect();
    assert_eq!(
        told,
        [
            ((2, 64), (1, 8)),
            ((2, 64), (4, 8)),
            ((2, 4096), (1, 8)),
            ((2, 4096), (4, 8))
        ]
    );
}

#[test]
fn ids_name_what_varies_and_at_most_four_flows() {
    assert_eq!(
        ids(
            "op = ['send', 'read']\nworkers = [1, 2]\npoll = ['busy', 'event']\n[[flow]]\nname = 'x'\ntx-depth = 4"
        ),
        [
            "x-send-w1-busy",
            "x-send-w1-event",
            "x-send-w2-busy",
            "x-send-w2-event",
            "x-read-w1-busy",
            "x-read-w1-event",
            "x-read-w2-busy",
            "x-read-w2-event",
        ]
    );
    assert_eq!(ids(&"[[flow]]\n".repeat(4)), ["flow1+flow2+flow3+flow4"]);
    assert_eq!(
        ids(&"[[flow]]\n".repeat(7)),
        ["flow1+flow2+flow3+flow4+3more"]
    );
}

#[test]
fn what_no_flow_has_use_for_makes_no_case() {
    // Only the second flow sends in the cases of writes, and receives only it.
    let text =
        "op = ['write', 'read']\ninline = [0, 64]\n[[flow]]\nsize = 64\n[[flow]]\nop = 'read'";
    assert_eq!(
        ids(text),
        [
            "flow1+flow2-write-I0B",
            "flow1+flow2-write-I64B",
            "flow1+flow2-read"
        ]
    );
    let cases = sweep_of(text).unwrap().cases;
    let inline = |case: &Case| {
        case.flows
            .iter()
            .map(|it| it.inline_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cases.iter().map(inline).collect::<Vec<_>>(),
        [[0, 0], [64, 0], [0, 0]]
    );
}

#[test]
fn one_flow_is_the_case() {
    let cases =
        sweep_of("nodes = 'local:3'\n[[flow]]\nfrom = 'node2'\nto = 'node0'\nqps = 3").unwrap();
    let case = &cases.cases[0];
    assert_eq!((cases.nodes.count(), case.id.as_str()), (3, "flow1"));
    assert_eq!(case.settings, case.flows[0].settings);
    assert_eq!((case.flows[0].from, case.flows[0].to, case.qps), (2, 0, 3));
}

#[test]
fn what_makes_no_sense_names_the_flow_and_what_mends_it() {
    let said = [
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
    insta::assert_snapshot!(said.concat());
    let error = sweep_of(&"[[flow]]\n".repeat(MOST_FLOWS + 1)).unwrap_err();
    assert_eq!(
        error,
        PlanError::TooManyFlows {
            flows: MOST_FLOWS + 1
        }
    );
}

#[test]
fn the_flows_of_all_cases_are_limited() {
    let list: Vec<String> = (1..=500).map(|it| it.to_string()).collect();
    let text = format!(
        "tx-depth = [{}]\n{}",
        list.join(","),
        "[[flow]]\nsize = '64K'\n".repeat(400)
    );
    let error = sweep_of(&text).unwrap_err();
    assert_eq!(
        error,
        PlanError::TooManyCases {
            cases: 500,
            most: 250,
            longest: "tx-depth"
        }
    );
}

#[test]
fn flows_of_a_peer_are_checked() {
    let good = sweep_of("[[flow]]\n[[flow]]\nfrom = 'server'\nto = 'client'\nfrom-device = 'a'")
        .unwrap()
        .cases
        .remove(0);
    assert_eq!(Sweep::check(&good), Ok(()));
    type Damage = fn(&mut Case);
    let damages: [(Damage, &str); 11] = [
        (|case| case.flows.clear(), "no flow"),
        (
            |case| case.flows = vec![case.flows[0].clone(); MOST_FLOWS + 1],
            "too many",
        ),
        (
            |case| case.flows[1].name = "flow1".into(),
            "name of its own",
        ),
        (
            |case| case.flows[0].name = "\u{1b}".into(),
            "name of its own",
        ),
        (
            |case| case.flows[0].name = "a>b>c".into(),
            "name of its own",
        ),
        (|case| case.flows[0].to = MOST_NODES, "no node"),
        (
            |case| case.flows[1].from_device.as_mut().unwrap().name.clear(),
            "device",
        ),
        (
            |case| case.flows[1].from_device.as_mut().unwrap().ib_port = Some(0),
            "device",
        ),
        (
            |case| case.flows[1].op = settings::Workload::Connect,
            "not a flow",
        ),
        (|case| case.flows[1].workers = 9, "holds for all"),
        (|case| case.flows[1].qps = 0, "--qps 0"),
    ];
    for (damage, words) in damages {
        let mut case = good.clone();
        damage(&mut case);
        let error = Sweep::check(&case).unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn a_pattern_makes_the_flows_of_its_cases() {
    let sweep = sweep_of(
        "nodes = ['a', 'b/mlx5_1', 'c']\npattern = ['pairs', 'incast']\nfan-in = [1, 2]\nqps = [1, 4]\nduration = '1s'",
    )
    .unwrap();
    // Three nodes have six rounds of one pair; --fan-in makes no cases of them.
    let of = |word: &str| {
        let cases = sweep.cases.iter();
        cases
            .filter(|case| case.pattern.as_ref().unwrap().word() == word)
            .count()
    };
    assert_eq!((of("pairs"), of("incast")), (12, 4));
    let ids: HashSet<_> = sweep.cases.iter().map(|case| &case.id).collect();
    assert_eq!(ids.len(), sweep.cases.len());
    let rounds = sweep.cases.iter();
    let rounds = rounds.filter(|case| case.id.starts_with("send-shared-q1-64KiB-pairs-round"));
    let rounds: Vec<_> = rounds.collect();
    assert!(
        rounds
            .iter()
            .all(|case| case.settings == rounds[0].settings)
    );
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
    let sweep =
        sweep_of("nodes = 'local:2'\npattern = ['pairs', 'loop']\nrate = '50%'\nduration = '1s'")
            .unwrap();
    let ids: Vec<_> = sweep.cases.iter().map(|case| case.id.as_str()).collect();
    let expected = [
        "send-shared-q1-64KiB-pairs-round1",
        "send-shared-q1-64KiB-pairs-R50%-round1",
        "send-shared-q1-64KiB-pairs-round2",
        "send-shared-q1-64KiB-pairs-R50%-round2",
        "send-shared-q1-64KiB-loop",
        "send-shared-q1-64KiB-loop-R50%",
    ];
    assert_eq!(ids, expected);
}
