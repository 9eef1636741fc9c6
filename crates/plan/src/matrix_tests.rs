use super::super::sweep::Sweep;
use super::*;
use crate::node_list::MOST_NODES;
use results::sample::{from_words, has};

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
    let told = "flow1+b-64B-q1 flow1+b-64B-q4 flow1+b-4KiB-q1 flow1+b-4KiB-q4";
    assert_eq!(ids(text), told);
    let told_of = |flow: &Flow| (flow.qps, flow.size_bytes);
    let cases = sweep_of(text).unwrap().cases;
    let told = cases.iter().map(|case| [told_of(&case.flows[0]), told_of(&case.flows[1])]);
    let small = [[(2, 64), (1, 8)], [(2, 64), (4, 8)]];
    let large = [[(2, 4096), (1, 8)], [(2, 4096), (4, 8)]];
    assert!(told.eq([small, large].concat()));
}

#[test]
fn ids_name_what_varies_and_at_most_four_flows() {
    let text = "op = ['send', 'read']\nworkers = [1, 2]\npoll = ['busy', 'event']\n[[flow]]\nname = 'x'\ntx-depth = 4";
    let told = "x-send-w1-busy x-send-w1-event x-send-w2-busy x-send-w2-event x-read-w1-busy x-read-w1-event \
                x-read-w2-busy x-read-w2-event";
    assert_eq!(ids(text), told);
    assert_eq!(ids(&"[[flow]]\n".repeat(4)), "flow1+flow2+flow3+flow4");
    let more = "flow1+flow2+flow3+flow4+3more";
    assert_eq!(ids(&"[[flow]]\n".repeat(7)), more);
}

#[test]
fn what_no_flow_has_use_for_makes_no_case() {
    // Only the second flow sends in the cases of writes, and receives only it.
    let text =
        "op = ['write', 'read']\ninline = [0, 64]\n[[flow]]\nsize = 64\n[[flow]]\nop = 'read'";
    let told = "flow1+flow2-write-I0B flow1+flow2-write-I64B flow1+flow2-read";
    assert_eq!(ids(text), told);
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
    let of = |word: &str| words.iter().filter(|it| **it == word).count();
    assert_eq!((of("pairs"), of("incast")), (12, 4));
    let ids: HashSet<_> = sweep.cases.iter().map(|case| &case.id).collect();
    assert_eq!(ids.len(), sweep.cases.len());
    let rounds: Vec<_> = sweep
        .cases
        .iter()
        .filter(|case| case.id.starts_with("send-shared-q1-64KiB-pairs-round"))
        .collect();
    let mut all = rounds.iter().map(|case| &case.settings);
    assert!(all.all(|settings| *settings == rounds[0].settings));
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
    let told = format!("{pairs}-round1 {pairs}-R50%-round1 {pairs}-round2 {pairs}-R50%-round2");
    assert_eq!(ids(text), format!("{told} {ring} {ring}-R50%"));
}
