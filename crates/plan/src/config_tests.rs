use proptest::prelude::*;
use results::sample::{from_words, has};
use settings::Misfit;

use super::*;
use crate::Sweep;

fn parse(text: &str) -> Result<ConfigFile, String> {
    ConfigFile::parse(text, Path::new("s.toml"), &["token"]).map_err(|error| error.to_string())
}

#[test]
fn values_are_read_as_the_flags_read_them() {
    let text = "qps = [1, 4, 0x10]\nsize = ['64K', 4096]\ncq = 'per-qp'\nduration = 0.5\nverify = true\n\n  runs = 1_0\n";
    let file = parse(text).unwrap();
    let expected =
        from_words("qps=1,4,16 size=64K,4K cq=per-qp duration=500ms verify=true runs=10");
    assert_eq!(file.given, expected);
    let no_effect =
        |flag| PlanError::Misfit { misfit: Misfit::NoEffect { flag, why: "" }, case: None };
    let runs = Some(Place { line: 7, column: 3 });
    assert_eq!(file.place_of(&no_effect("runs"), false), runs);
    assert_eq!(file.place_of(&no_effect("runs"), true), None);
    assert_eq!(file.place_of(&no_effect("op"), false), None);
}

#[test]
fn sizes_may_have_weights() {
    let file = parse("size = [{bytes = 64, weight = 9}, {bytes = '64K', weight = 1}]\n").unwrap();
    assert_eq!(file.given, Given::from([("size-mix", "64:9,64K:1")]));
}

#[test]
fn every_error_has_its_place() {
    let errors = [
        "size = [{bytes = 64}, 4096]",
        "size = [{bytes = 64, weight = 1}]",
        "qpps = 1",
        "\ntx_depth = 1",
        "[everything]\nqps = 1",
        "token = 'x'",
        "qps = [1,\n  'µ', 1]",
        "qps = [4, 4]",
        "qps = []",
        "qps = true",
        "qps = [[1]]",
        "qps = -1",
        "qps = 99999999999999999999",
        "verify = 1",
        "op = 'sent'",
    ]
    .map(|text| format!("{text}\n-> {}\n\n", parse(text).unwrap_err()));
    insta::assert_snapshot!(errors.concat());
    // What the library for TOML says.
    for (text, place) in [("qps = 1\nqps = 2", "s.toml:2:1: "), ("qps = \n", "s.toml:1:7: ")] {
        assert!(parse(text).unwrap_err().starts_with(place), "{text}");
    }
}

#[test]
fn an_error_of_the_plan_is_placed_in_the_flow_or_above_it() {
    let place = |text: &str, is_overridden| {
        let file = ConfigFile::parse(text, Path::new("s.toml"), &[]).unwrap();
        let error = Sweep::with_flows(&file.given, &file.flows, Nodes::TwoEnds).unwrap_err();
        let place = file.place_of(&error, is_overridden);
        place.map(|place| (place.line, place.column))
    };
    let deep = "post-list = 200\ntx-depth = 128\n[[flow]]\n";
    for (text, expected, overridden) in [
        // Its own value, whatever flags say.
        ("[[flow]]\n  qps = 0", Some((2, 3)), Some((2, 3))),
        ("[[flow]]\nto = 'x'", Some((2, 1)), Some((2, 1))),
        // The value above, which a flag stands for.
        (deep, Some((1, 1)), None),
        // Neither: the flow.
        ("\n[[flow]]\nfrom = 'server'", Some((2, 1)), None),
        ("qps = 4\n[[flow]]\nqps = 2", Some((1, 1)), None),
    ] {
        assert_eq!(place(text, false), expected, "{text}");
        assert_eq!(place(text, true), overridden, "{text}");
    }
}

#[test]
fn unreadable_files_say_why() {
    let refused = |path: &Path| ConfigFile::read(path, &[]).unwrap_err().to_string();
    let missing = "cannot read the configuration file /nonexistent/s.toml: No such file";
    has(refused(Path::new("/nonexistent/s.toml")), [missing]);
    has(refused(Path::new("/dev/zero")), ["larger than"]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latin1.toml");
    std::fs::write(&path, b"# ok\nop = '\xe4'").unwrap();
    assert!(refused(&path).ends_with("latin1.toml: it is not UTF-8 text at 2:7"));
}

#[test]
fn the_shipped_sweeps_expand() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-configs");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let file = ConfigFile::read(&path, &[]).unwrap();
        let nodes = file.nodes.clone().unwrap_or_default();
        let sweep = Sweep::with_flows(&file.given, &file.flows, nodes).unwrap();
        let parts = sweep.cases.iter().map(|case| case.flows.len()).sum::<usize>();
        assert!(parts > 1, "{} is no sweep", path.display());
        names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    let shipped = "atomics buffers cq-modes latency many-nodes message-size post-and-poll qp-scaling quick set-up \
                   srq-scaling staged ud-fan-out working-set";
    assert_eq!(names.join(" "), shipped);
}

/// A file of lines that look like settings.
fn any_file() -> impl Strategy<Value = String> {
    let keys: Vec<&str> =
        ROWS.iter().map(|row| row.flag).chain(["nodes", "flow", "flow.x", "\"\"", "x"]).collect();
    let values = "1 0 -1 1.5 inf nan 1e308 9223372036854775807 true '' 'x' '64K' '1ms' 'a->b' [] [1,4] [[1]] [1,'x'] {} {x=1} \
                  {bytes=64,weight=1} [{bytes=64,weight=9},{bytes='1G',weight=1}] [{from=1,to=0}] 1979-05-27 0x10 '\\u001b' ] '";
    let values: Vec<&str> = values.split_whitespace().collect();
    let line = prop_oneof![
        6 => (prop::sample::select(keys.clone()), prop::sample::select(values))
            .prop_map(|(key, value)| format!("{key} = {value}")),
        1 => prop::sample::select(keys).prop_map(|key| format!("[[{key}]]")),
        1 => ".{0,20}",
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn whatever_a_file_holds_is_a_sweep_or_is_refused(text in any_file()) {
        match parse(&text) {
            Ok(file) => drop(Sweep::new(&file.given)),
            Err(refused) => prop_assert!(refused.starts_with("s.toml:"), "{refused}"),
        }
    }
}

#[test]
fn flows_are_read_with_what_is_theirs() {
    let file = parse(
        "nodes = ['a', 'b:1']\nqps = [1, 2]\n[[flow]]\nname = 'x'\nfrom = 'b:1'\nto = 'a'\nfrom-device = 'mlx5_0'\n\
         from-ib-port = 2\nsize = '1M'\nverify = true\n[[flow]]\nto-device = 'soft0'\n",
    )
    .unwrap();
    assert_eq!(file.nodes.unwrap().names(), ["a", "b:1"]);
    assert_eq!(file.given, Given::from([("qps", "1,2")]));
    let [x, flow2] = <[FlowTable; 2]>::try_from(file.flows).unwrap();
    let device = |name: &str, ib_port| {
        let name = name.to_owned();
        Some(FlowDevice { name, ib_port })
    };
    let mut expected = FlowTable {
        name: "x".to_owned(),
        from: Some("b:1".to_owned()),
        to: Some("a".to_owned()),
        from_device: device("mlx5_0", Some(2)),
        given: Given::from([("size", "1M"), ("verify", "true")]),
        offsets: x.offsets.clone(),
        ..FlowTable::default()
    };
    assert_eq!(x, expected);
    expected = FlowTable {
        name: "flow2".to_owned(),
        to_device: device("soft0", None),
        offsets: flow2.offsets.clone(),
        ..FlowTable::default()
    };
    assert_eq!(flow2, expected);
    let inline = parse("flow = [{qps = 3}]").unwrap().flows.remove(0);
    assert_eq!(inline.given, Given::from([("qps", "3")]));
    let nodes = |text: &str| parse(text).unwrap().nodes;
    assert_eq!(nodes("nodes = 'local:3'"), Some(Nodes::Local(3)));
    assert_eq!(nodes("nodes = ['local:3']"), Some(Nodes::Local(3)));
    assert_eq!(nodes("qps = 3"), None);
}

#[test]
fn every_error_of_a_flow_has_its_place() {
    let of_a_flow = [
        "qps = [1, 4]",
        "workers = 2",
        "nodes = 'local:2'",
        "form = 'client'",
        "qpps = 4",
        "op = 'connect'",
        "qps = 'x'",
        "verify = 1",
        "name = 3",
        "name = 'a b'",
        "name = ''",
        "from = 'http://a'",
        "to-device = ''",
        "to-device = 'm'\nto-ib-port = 256",
        "to-ib-port = 1",
        "[[flow]]\nname = 'flow1'",
        "name = 'flow2'\n[[flow]]",
    ];
    let above = [
        "[flow]\nqps = 1",
        "flow = [1]",
        "flow = []",
        "nodes = ['a', 'a']",
        "nodes = 'local:1'",
        "nodes = true",
    ];
    let errors = of_a_flow
        .map(|text| format!("size = 64\n[[flow]]\n{text}"))
        .into_iter()
        .chain(above.map(str::to_owned))
        .map(|text| format!("{text}\n-> {}\n\n", parse(&text).unwrap_err()));
    insta::assert_snapshot!(errors.collect::<String>());
}

/// Values that a flow may have of a setting.
fn values_of(row: &Row) -> Vec<&'static str> {
    let texts = "send write read shared per-qp tcp cm 1 3 7 64 256 1024 4K true false";
    let mut scratch = Settings::default();
    let mut is_read = |text: &&str| row.read(&mut scratch, text).is_ok();
    texts.split(' ').filter(|text| is_read(text)).collect()
}

fn some_flow() -> impl Strategy<Value = FlowTable> {
    let node = || proptest::option::of("[a-z][a-z0-9.-]{0,20}");
    let device = || {
        let port = proptest::option::of(1..=u8::MAX);
        let device = ("[a-z0-9_\"'\\\\#]{1,12}", port);
        proptest::option::of(device.prop_map(|(name, ib_port)| FlowDevice { name, ib_port }))
    };
    let rows: Vec<_> = ROWS.iter().filter(|row| row.scope == Scope::Flow).collect();
    let values = proptest::collection::vec((0..rows.len(), any::<prop::sample::Index>()), 0..8);
    (node(), node(), device(), device(), values).prop_map(
        move |(from, to, from_device, to_device, values)| {
            let mut given = Given::default();
            for (row, index) in values {
                let choices = values_of(rows[row]);
                if !choices.is_empty() {
                    let value = choices[index.index(choices.len())];
                    given.set(rows[row], value).unwrap();
                }
            }
            FlowTable { from, to, from_device, to_device, given, ..FlowTable::default() }
        },
    )
}

fn written(flow: &FlowTable) -> String {
    let mut text = format!("[[flow]]\nname = \"{}\"\n", flow.name);
    for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
        let node = node.as_ref().map(|node| format!("{key} = {node:?}\n"));
        text += &node.unwrap_or_default();
    }
    for row in ROWS {
        if let [value] = flow.given.values(row.flag) {
            text += &match row.takes {
                Takes::Switch => format!("{} = {value}\n", row.flag),
                _ => format!("{} = {value:?}\n", row.flag),
            };
        }
    }
    for (end, device) in [("from", &flow.from_device), ("to", &flow.to_device)] {
        if let Some(device) = device {
            text += &format!("{end}-device = {:?}\n", device.name);
            if let Some(port) = device.ib_port {
                text += &format!("{end}-ib-port = {port}\n");
            }
        }
    }
    text
}

proptest! {
    #[test]
    fn flows_are_read_back(flows in proptest::collection::vec(some_flow(), 1..6)) {
        let mut flows = flows;
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.name = format!("F-{number}");
        }
        let text: String = flows.iter().map(written).collect();
        let mut read = parse(&text).map_err(TestCaseError::fail)?.flows;
        for flow in &mut read {
            flow.offsets.clear();
        }
        prop_assert_eq!(&read, &flows, "{}", text);
        // What is theirs is in the case, where it has an effect.
        for flow in &mut read {
            (flow.from, flow.to) = (None, None);
        }
        if let Ok(sweep) = Sweep::with_flows(&Given::default(), &read, Nodes::TwoEnds) {
            let case = &sweep.cases[0];
            prop_assert_eq!(Sweep::check(case), Ok(()));
            for (flow, table) in case.flows.iter().zip(&read) {
                for row in ROWS.iter().filter(|row| row.has_effect(flow)) {
                    if let [value] = table.given.values(row.flag) {
                        prop_assert_eq!(&row.text(flow), value, "{}", row.flag);
                    }
                }
            }
        }
    }
}
