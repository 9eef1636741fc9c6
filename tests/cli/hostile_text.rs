//! Files whose texts would drive a terminal, forge a line of a log or flood it: nothing that is printed does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Clears a screen, forges a line, turns what follows around, hides, and is long.
fn hostile() -> String {
    format!(
        "\u{1b}[2J\u{9b}31m\nrocebench: error: forged\r\u{202e}\u{2066}\u{200b}\u{7f}{}",
        "x".repeat(1 << 14)
    )
}

/// The program in a folder.
fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("rocebench"))
        .args(args)
        .current_dir(folder)
        .env_remove("ROCEBENCH_LOG")
        .output()
        .unwrap()
}

/// What it printed: no line but ours, nothing that a terminal obeys, no flood.
#[track_caller]
fn is_tame(output: &Output) -> String {
    let text = [&*output.stdout, b"\n", &*output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    let shown: String = text.chars().take(5000).collect();
    let wild = |char: &char| {
        char.is_control() && *char != '\n'
            || matches!(*char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(text.chars().find(wild), None, "{shown}");
    assert!(
        !text
            .lines()
            .any(|line| line.starts_with("rocebench: error: forged")),
        "{shown}"
    );
    assert!(text.len() < 100_000, "{} bytes: {shown}", text.len());
    text
}

/// Texts that a reader parses.
const READ: [&str; 21] = [
    "started_at",
    "rate",
    "arrivals",
    "pace",
    "op",
    "cq",
    "poll",
    "connect",
    "post",
    "poll_api",
    "domains",
    "timestamps",
    "spread",
    "warmup",
    "histogram",
    "recv_queue",
    "mr",
    "pages",
    "touch_order",
    "atomic_target",
    "service",
];

/// Puts the text before every text that a reader does not parse itself.
fn poison(value: &mut Value, key: &str) {
    match value {
        Value::String(text) if !READ.contains(&key) => {
            *text = hostile() + text;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, key)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                poison(value, key);
            }
            if let Some(counters) = fields.get_mut("counters") {
                *counters = serde_json::json!({ hostile(): 1 });
            }
        }
        _ => {}
    }
}

/// A result file of which every text is hostile, and one in which they are others.
fn files(folder: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let mut result: Value = serde_json::from_str(&fs::read_to_string(source).unwrap()).unwrap();
    poison(&mut result, "");
    result["cases"][1]["runs"][0]["failure"] =
        serde_json::json!({ "message": hostile(), "hint": null });
    fs::write(folder.join("base.json"), result.to_string()).unwrap();
    result["nodes"][0]["kernel"] = format!("{}6.2", hostile()).into();
    result["nodes"][0]["os"] = format!("\u{1b}]0;title\u{7}{}", hostile()).into();
    let evil = "new\u{1b}[2J\n\u{202e}.json";
    fs::create_dir(folder.join("new")).unwrap();
    fs::write(folder.join("new").join(evil), result.to_string()).unwrap();
    fs::write(
        folder.join("new").join(format!("a{evil}")),
        "{\"schema_version\": 1,",
    )
    .unwrap();
    fs::write(
        folder.join("new").join(format!("b{evil}")),
        result.to_string(),
    )
    .unwrap();
    result["cases"][0]["config"]["op"] = hostile().into();
    let path = folder.join("new").join(format!("c{evil}"));
    fs::write(path, result.to_string()).unwrap();
}

#[test]
fn a_comparison_of_hostile_files_is_tame_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    for document in [
        None,
        Some("--markdown"),
        Some("--junit"),
        Some("--bmf"),
        Some("--otava"),
        Some("--json"),
    ] {
        for across in ["host", "host,settings,device"] {
            let mut args = vec!["compare", "base.json", "new", "--across", across];
            args.extend(document.iter().flat_map(|flag| [*flag, "-"]));
            let text = is_tame(&run(folder.path(), &args));
            assert!(text.contains("\\u{1b}[2J"), "{args:?}: {text}");
        }
    }
}

#[test]
fn a_page_of_hostile_files_is_tame() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let output = run(
        folder.path(),
        &[
            "plot",
            "new",
            "--base",
            "base.json",
            "-o",
            "plots",
            "--across",
            "host",
        ],
    );
    is_tame(&output);
    for entry in fs::read_dir(folder.path().join("plots")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let wild = |char: &char| {
            char.is_control() && *char != '\n' || ('\u{202a}'..='\u{202e}').contains(char)
        };
        assert_eq!(text.chars().find(wild), None, "{}", path.display());
    }
}

#[test]
fn a_hostile_configuration_is_quoted_tamely() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "\"\\u001b[2J\\nrocebench: error: forged\" = 1",
        "op = \"\\u001b[2J\\nrocebench: error: forged\"",
        "size = \"\\u202e\\u009b\"",
        "qps = [\"\\u001b[2J\\nrocebench: error: forged\", 3]",
        "nodes = [\"\\u001b[2J\\nrocebench: error: forged\", 'b']",
        "[[flow]]\nname = \"\\u001b[2J\\nrocebench: error: forged\"",
        "[[flow]]\nto = \"\\u001b[2J\\nrocebench: error: forged\"",
        "[[flow]]\nfrom-device = \"\\u001b[2J\\nrocebench: error: forged\"",
    ] {
        fs::write(folder.path().join("s.toml"), text).unwrap();
        let output = run(folder.path(), &["--dry-run", "--config", "s.toml"]);
        assert_eq!(output.status.code(), Some(2));
        is_tame(&output);
    }
    fs::write(
        folder.path().join("s.toml"),
        format!("op = \"{}\"", "x".repeat(1 << 19)),
    )
    .unwrap();
    is_tame(&run(folder.path(), &["--dry-run", "--config", "s.toml"]));
}
