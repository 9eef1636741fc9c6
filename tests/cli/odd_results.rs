//! Results whose figures no measurement gives: they are refused or told, and nothing panics.

use std::fs;
use std::path::Path;

use results::sample::mesh::Mesh;
use results::sample::sweep::Synthetic;
use serde_json::{Value, json};

use crate::run_in;

/// Files of one call of the program.
const FILES: usize = 24;

/// Changes of one file.
const CHANGES: usize = 6;

/// The pointers of all values that hold no others, and of lists.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                places(field, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            found.push(at.to_owned());
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Another value of the same kind, which the reader takes but where it says why not.
fn odd(value: &Value, random: &mut fastrand::Rng) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let odd = [0.0, -1.0, 0.5, 1e308, -1e308, 5e-324, 1e-9];
            random.choice(odd).map_or(Value::Null, Value::from)
        }
        Value::Number(_) => {
            let odd = [0, 1, 2, 255, u64::from(u32::MAX), u64::MAX];
            random.choice(odd).map_or(Value::Null, Value::from)
        }
        Value::String(text) => match random.u8(..4) {
            0 => "".into(),
            1 => format!("{text}{text}").into(),
            2 => "x".repeat(600).into(),
            _ => "\u{202e}\u{1b}[2J\n".into(),
        },
        Value::Array(items) => match random.u8(..3) {
            0 => json!([]),
            1 => items.iter().take(1).cloned().collect(),
            _ => items.iter().chain(items).cloned().collect(),
        },
        Value::Bool(is) => json!(!is),
        other => other.clone(),
    }
}

fn write_odd(folder: &Path, random: &mut fastrand::Rng) {
    fs::create_dir(folder).unwrap();
    let few = Synthetic {
        ops: vec!["send"],
        cqs: vec!["shared"],
        qps: vec![1, 16],
        sizes: vec![64],
        workers: vec![1],
        set_up: vec![1, 16],
        ..Synthetic::default()
    };
    let loads = Synthetic { rates: vec!["10%", "90%"], set_up: Vec::new(), ..few.clone() };
    let whole = [few.result(), loads.result(), Mesh::new(4).pairs(), Mesh::new(4).incast(&[1, 3])];
    let whole = whole.map(|result| serde_json::to_value(result).unwrap());
    for number in 0..FILES {
        let mut changed = whole[number % whole.len()].clone();
        let mut found = Vec::new();
        places(&changed, "", &mut found);
        for _ in 0..random.usize(1..=CHANGES) {
            let place = random.choice(&found).unwrap();
            // It may be within a list that is shorter now.
            if let Some(value) = changed.pointer_mut(place) {
                *value = odd(value, random);
            }
        }
        let path = folder.join(format!("{number}.json"));
        fs::write(path, changed.to_string()).unwrap();
    }
}

#[test]
fn whatever_a_result_holds_is_drawn_compared_or_refused() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let home = tempfile::tempdir().unwrap();
        for side in ["base", "new"] {
            write_odd(&home.path().join(side), &mut random);
        }
        let outputs =
            "--json c.json --markdown c.md --junit c.xml --bmf c.bmf --otava c.csv --across time";
        let compare: Vec<&str> =
            ["compare", "base", "new"].into_iter().chain(outputs.split(' ')).collect();
        for words in [&*compare, &["plot", "new", "--base", "base", "-o", "plots"]] {
            let ended = run_in(&home, words);
            let last: String = ended.stderr().lines().rev().take(8).collect::<Vec<_>>().join("\n");
            assert!(ended.code.is_some_and(|code| code <= 3), "seed {seed}, {words:?}: {last}");
        }
    }
}
