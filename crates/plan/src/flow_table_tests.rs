use std::path::Path;

use proptest::prelude::*;
use settings::Takes;

use super::*;
use crate::{ConfigFile, Nodes, Sweep};

fn parse(text: &str) -> Result<ConfigFile, String> {
    ConfigFile::parse(text, Path::new("s.toml"), &[]).map_err(|error| error.to_string())
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
    let said = of_a_flow
        .map(|text| format!("size = 64\n[[flow]]\n{text}"))
        .into_iter()
        .chain(above.map(str::to_owned))
        .map(|text| format!("{text}\n-> {}\n\n", parse(&text).unwrap_err()));
    insta::assert_snapshot!(said.collect::<String>());
}

/// Values that a flow may have of a setting.
fn values_of(row: &Row) -> Vec<&'static str> {
    let all = "send write read shared per-qp tcp cm 1 3 7 64 256 1024 4K true false";
    let mut scratch = Settings::default();
    let mut is_read = |text: &&str| row.read(&mut scratch, text).is_ok();
    all.split(' ').filter(|text| is_read(text)).collect()
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
                let values = values_of(rows[row]);
                if !values.is_empty() {
                    let value = values[index.index(values.len())];
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
            for (flow, asked) in case.flows.iter().zip(&read) {
                for row in ROWS.iter().filter(|row| row.has_effect(flow)) {
                    if let [value] = asked.given.values(row.flag) {
                        prop_assert_eq!(&row.text(flow), value, "{}", row.flag);
                    }
                }
            }
        }
    }
}
