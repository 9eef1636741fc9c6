use proptest::prelude::*;
use settings::Misfit;

use super::*;
use crate::Sweep;
use results::sample::{from_words, has};

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
    let said = [
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
    insta::assert_snapshot!(said.concat());
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
    assert!(refused(&path).ends_with("latin1.toml:2:7: this is not UTF-8 text"));
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
        assert!(sweep.cases.len() > 1, "{} is no sweep", path.display());
        names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    let shipped = "atomics buffers cq-modes latency many-nodes message-size post-and-poll qp-scaling quick set-up \
                   srq-scaling ud-fan-out working-set";
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
