//! Files whose texts would drive a terminal, forge a line of a log or flood it: nothing that is printed does.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use results::sample::has;
use serde_json::{Value, json};
use testing::process::Ended;

use crate::{program, run_in};

/// Clears a screen, forges a line, turns what follows around, hides, and is long.
fn hostile() -> String {
    format!(
        "\u{1b}[2J\u{9b}31m\nrocebench: error: forged\r\u{202e}\u{2066}\u{200b}\u{7f}{}",
        "x".repeat(1 << 14)
    )
}

/// What a terminal or a reader obeys.
fn is_wild(char: char) -> bool {
    let hides =
        matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    hides || char.is_control() && char != '\n'
}

/// What it printed: no line but ours, nothing that a terminal obeys, no flood.
#[track_caller]
fn is_tame(ran: &Ended) -> String {
    let text = format!("\n{}\n{}", ran.stdout, ran.stderr());
    let shown: String = text.chars().take(5000).collect();
    assert_eq!(text.chars().find(|it| is_wild(*it)), None, "{shown}");
    assert!(!text.contains("\nrocebench: error: forged"), "{shown}");
    assert!(text.len() < 100_000, "{} bytes: {shown}", text.len());
    text
}

/// Texts that a reader parses.
const READ: &str = "started_at rate arrivals pace op cq poll connect post poll_api domains timestamps spread warmup \
                    histogram recv_queue mr memory_at register ordering touch_order atomic_target service split";

/// Puts the text before every text that a reader does not parse itself.
fn poison(value: &mut Value, key: &str) {
    match value {
        Value::String(text) if !READ.split(' ').any(|it| it == key) => *text = hostile() + text,
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, key)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                poison(field, name);
            }
            if let Some(counters) = fields.get_mut("counters") {
                *counters = json!({ hostile(): 1 });
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
    result["cases"][1]["runs"][0]["failure"] = json!({ "message": hostile(), "hint": null });
    fs::write(folder.join("base.json"), result.to_string()).unwrap();
    result["nodes"][0]["kernel"] = format!("{}6.2", hostile()).into();
    result["nodes"][0]["os"] = format!("\u{1b}]0;title\u{7}{}", hostile()).into();
    fs::create_dir(folder.join("new")).unwrap();
    let write = |letter: &str, text: &str| {
        let name = format!("new/{letter}new\u{1b}[2J\n\u{202e}.json");
        fs::write(folder.join(name), text).unwrap();
    };
    write("", &result.to_string());
    write("a", "{\"schema_version\": 2,");
    write("b", &result.to_string());
    result["cases"][0]["config"]["op"] = hostile().into();
    write("c", &result.to_string());
}

#[test]
fn a_comparison_of_hostile_files_is_tame_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let documents = ["", "--markdown", "--junit", "--bmf", "--otava", "--json"];
    for document in documents {
        for across in ["host", "host,settings,device"] {
            let args = ["compare", "base.json", "new", "--across", across];
            let to_stdout = [document, "-"];
            let output = if document.is_empty() { &[][..] } else { &to_stdout };
            let text = is_tame(&run_in(&folder, &[&args, output].concat()));
            has(&text, ["\\u{1b}[2J"]);
        }
    }
}

#[test]
fn a_page_of_hostile_files_is_tame() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let args = "plot new --base base.json -o plots --across host";
    is_tame(&run_in(&folder, &args.split(' ').collect::<Vec<_>>()));
    for entry in fs::read_dir(folder.path().join("plots")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let wild = text.chars().find(|it| is_wild(*it));
        assert_eq!(wild, None, "{}", path.display());
    }
}

#[test]
fn a_hostile_configuration_is_quoted_tamely() {
    let folder = tempfile::tempdir().unwrap();
    let with = |text: &str| {
        fs::write(folder.path().join("s.toml"), text).unwrap();
        run_in(&folder, &["--dry-run", "--config", "s.toml"])
    };
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
        is_tame(&with(text).exits(2));
    }
    is_tame(&with(&format!("op = \"{}\"", "x".repeat(1 << 19))));
}

/// Whoever made a file chose its name, which need not even be text.
#[test]
fn a_hostile_path_is_shown_tamely_wherever_it_is_named() {
    let name = OsStr::from_bytes(b"\x1b[2J\nrocebench: error: forged\xe2\x80\xae\xff");
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let plot = format!("plot {sample} -o");
    let compare = format!("compare {sample}");
    let documents = ["--json", "--markdown", "--junit", "--bmf", "--otava"];
    let documents = documents.map(|flag| format!("compare {sample} {sample} {flag}"));
    let one_file = "--dry-run --csv=x --json=x";
    let others = [
        "--dry-run",
        "--dry-run --out",
        "--dry-run --op",
        "--dry-run --qps",
        "--dry-run --json",
        "--dry-run --config",
        "--dry-run --token-file",
        "--dry-run --nodes",
        "serve --receive",
        "mesh --config",
        "plot",
        "compare -q",
        "send /etc/hostname",
        "man --out",
        "doctor --device",
        one_file,
        &plot,
        &compare,
    ];
    let documents = documents.iter().map(String::as_str);
    for words in others.into_iter().chain(documents) {
        for is_there in [false, true] {
            let home = tempfile::tempdir().unwrap();
            if is_there {
                fs::write(home.path().join(name), "{").unwrap();
            }
            let words: Vec<&str> = words.split(' ').collect();
            let ran = program(&words).arg(name).within(&home).run();
            is_tame(&ran);
            assert!(ran.code.is_some_and(|code| code <= 3), "{words:?}: {}", ran.stderr());
        }
    }
    let at_sign = OsStr::from_bytes(b"@\x1b[2J\xff");
    is_tame(&program(&["--dry-run", "--nodes"]).arg(at_sign).run().exits(2));
}
