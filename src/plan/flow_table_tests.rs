use std::path::Path;

use proptest::prelude::*;
use settings::{Applies, Takes};

use super::*;
use crate::plan::{ConfigFile, Nodes, Sweep};

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
    let [x, flow2] = file.flows.as_slice() else {
        panic!("{:?}", file.flows)
    };
    let device = |name: &str, ib_port| {
        let name = name.to_owned();
        Some(FlowDevice { name, ib_port })
    };
    assert_eq!((x.name.as_str(), flow2.name.as_str()), ("x", "flow2"));
    assert_eq!(
        (x.from.as_deref(), x.to.as_deref()),
        (Some("b:1"), Some("a"))
    );
    assert_eq!((&flow2.from, &flow2.to), (&None, &None));
    assert_eq!(
        (&x.from_device, &x.to_device),
        (&device("mlx5_0", Some(2)), &None)
    );
    assert_eq!(
        (&flow2.from_device, &flow2.to_device),
        (&None, &device("soft0", None))
    );
    assert_eq!(x.given, Given::from([("size", "1M"), ("verify", "true")]));
    assert_eq!(flow2.given, Given::default());
    assert_eq!(
        parse("flow = [{qps = 3}]").unwrap().flows[0].given,
        Given::from([("qps", "3")])
    );
    let nodes = |text: &str| parse(text).unwrap().nodes;
    assert_eq!(nodes("nodes = 'local:3'"), Some(Nodes::Local(3)));
    assert_eq!(nodes("nodes = ['local:3']"), Some(Nodes::Local(3)));
    assert_eq!(nodes("qps = 3"), None);
}

#[test]
fn every_error_of_a_flow_has_its_place() {
    for (text, expected) in [
        (
            "qps = [1, 4]",
            "3:7: `qps`: a flow has one value; a list above the flows makes cases",
        ),
        (
            "workers = 2",
            "3:1: `workers` holds for all flows of a case: set it above the first [[flow]]",
        ),
        (
            "nodes = 'local:2'",
            "3:1: `nodes` holds for all flows of a case: set it above the first [[flow]]",
        ),
        (
            "form = 'client'",
            "3:1: unknown key `form` of a flow; did you mean `from`?",
        ),
        (
            "qpps = 4",
            "3:1: unknown key `qpps` of a flow; did you mean `qps`?",
        ),
        (
            "op = 'connect'",
            "3:6: `op`: a flow moves messages, by send, write or read; set-up is measured without [[flow]]",
        ),
        ("qps = 'x'", "3:7: `qps`: `x` is not a whole number"),
        ("verify = 1", "3:10: `verify` is true or false"),
        ("name = 3", "3:8: `name` takes a string, not integer"),
        (
            "name = 'a b'",
            "3:8: `name`: `a b` is not 1 to 32 letters, digits, dots, dashes or underscores",
        ),
        (
            "name = ''",
            "3:8: `name`: `` is not 1 to 32 letters, digits, dots, dashes or underscores",
        ),
        (
            "from = 'http://a'",
            "3:8: `from`: `http://a` is not a host name or address",
        ),
        (
            "to-device = ''",
            "3:13: `to-device`: `` is not the name of a device, such as mlx5_0",
        ),
        (
            "to-device = 'm'\nto-ib-port = 256",
            "4:14: `to-ib-port`: `256` is not a port: ports are 1 to 255",
        ),
        (
            "to-ib-port = 1",
            "3:1: `to-ib-port` is a port of `to-device`: give that too",
        ),
        (
            "[[flow]]\nname = 'flow1'",
            "4:1: two flows are named `flow1`: give each its own `name`",
        ),
        (
            "name = 'flow2'\n[[flow]]",
            "4:1: two flows are named `flow2`: give each its own `name`",
        ),
    ] {
        let text = format!("size = 64\n[[flow]]\n{text}");
        assert_eq!(
            parse(&text).unwrap_err(),
            format!("s.toml:{expected}"),
            "{text}"
        );
    }
    for (text, expected) in [
        (
            "[flow]\nqps = 1",
            "1:1: `flow` is a list of tables: write [[flow]] above the keys of each flow",
        ),
        (
            "flow = [1]",
            "1:8: `flow` is a list of tables: write [[flow]] above the keys of each flow",
        ),
        (
            "flow = []",
            "1:8: `flow` is a list of tables: write [[flow]] above the keys of each flow",
        ),
        ("nodes = ['a', 'a']", "1:9: `nodes`: a is listed twice"),
        (
            "nodes = 'local:1'",
            "1:9: `nodes`: one process has 2 to 256 nodes, not 1",
        ),
        (
            "nodes = true",
            "1:9: `nodes` takes a number or a string, not boolean",
        ),
    ] {
        assert_eq!(
            parse(text).unwrap_err(),
            format!("s.toml:{expected}"),
            "{text}"
        );
    }
}

/// Values that a flow may have of a setting.
fn values_of(row: &Row) -> Vec<&'static str> {
    let all = "send write read shared per-qp tcp cm 1 3 7 64 256 1024 4K true false";
    let mut scratch = Settings::default();
    all.split(' ')
        .filter(|text| row.read(&mut scratch, text).is_ok())
        .collect()
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
                    given
                        .set(rows[row], values[index.index(values.len())])
                        .unwrap();
                }
            }
            FlowTable {
                from,
                to,
                from_device,
                to_device,
                given,
                ..FlowTable::default()
            }
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
            let port = device
                .ib_port
                .map(|port| format!("{end}-ib-port = {port}\n"));
            text += &port.unwrap_or_default();
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
                for row in ROWS.iter().filter(|row| (row.applies)(flow) == Applies::Yes) {
                    if let [value] = asked.given.values(row.flag) {
                        prop_assert_eq!(&row.text(flow), value, "{}", row.flag);
                    }
                }
            }
        }
    }
}
