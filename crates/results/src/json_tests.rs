//! What is written is valid and read back; what is damaged is refused with its place.

use serde_json::json;

use super::*;
use crate::model::CaseResult;
use crate::sample::{self, has, starts};

fn text(result: &ResultFile) -> String {
    sample::text(|out| write_to(result, out))
}

fn parse_text(text: &str) -> Result<ResultFile, ReadError> {
    parse(Path::new("r.json"), None, text.as_bytes())
}

fn refused(text: &str) -> String {
    parse_text(text).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.json");
    for result in [sample::result(), sample::open_loop()] {
        write(&result, &path).unwrap();
        assert_eq!(read(&path).unwrap(), result);
    }
    has(text(&sample::result()), ["\"messages\": [1780,0,1790]"]);
}

#[test]
fn unknown_fields_are_ignored() {
    let json = text(&sample::result());
    let later = "\"from_later\": [1, {}], \"fairness\": {";
    let more = json.replace("\"fairness\": {", later);
    assert_ne!(json, more);
    assert_eq!(parse_text(&more).unwrap(), sample::result());
}

/// The fields of each object below a value: the object's JSON pointer, the field, and its place as messages show it.
fn fields(value: &Value, [pointer, place]: [&str; 2], found: &mut Vec<[String; 3]>) {
    let mut below = |name: &str, own_place: String, own: &Value| {
        fields(own, [&format!("{pointer}/{name}"), &own_place], found);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(&index.to_string(), format!("{place}[{index}]"), item);
            }
        }
        Value::Object(own) => {
            for (name, field) in own {
                below(name, format!("{place}.{name}"), field);
            }
            // Counters carry the driver's names, and flows have the settings that differ.
            if !pointer.ends_with("/counters") && !pointer.ends_with("/settings") {
                found.extend(own.keys().map(|name| {
                    [pointer.to_owned(), name.clone(), format!("{place}.{name}")[1..].to_owned()]
                }));
            }
        }
        _ => {}
    }
}

/// Without its distributions, which take long to read so often.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(own) => own.values_mut().for_each(shorten),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::String(text) if text.len() > 99 => text.clear(),
        _ => {}
    }
}

#[test]
fn no_field_may_be_absent() {
    let mut result = sample::result();
    let (config, run) = sample::connect();
    (result.cases[0].config, result.cases[0].runs) = (config, vec![run]);
    // A closed loop with a search, and an open one with a test of its gaps.
    result.cases.extend(sample::open_loop().cases);
    result.cases.truncate(4);
    let mut whole = serde_json::to_value(result).unwrap();
    shorten(&mut whole);
    let mut found = Vec::new();
    fields(&whole, ["", ""], &mut found);
    assert!(found.len() > 300, "{}", found.len());
    // Of lists one item of each kind is enough.
    let kind =
        |[_, _, place]: &[String; 3]| place.replace(|letter: char| letter.is_ascii_digit(), "");
    found.sort_by_key(kind);
    found.dedup_by_key(|field| kind(field));
    // What is left out where it is not known, in files with many distributions and QPs.
    found.retain(|[_, field, place]| {
        let of_qp = place.contains(".qps[") && ["service_ns", "lateness_ns"].contains(&&**field);
        !(of_qp
            || field == "histogram"
            || field.starts_with('p') && field[1..].starts_with(char::is_numeric))
    });
    for [pointer, field, place] in found {
        let mut less = whole.clone();
        let object = less.pointer_mut(&pointer).unwrap();
        object.as_object_mut().unwrap().shift_remove(&field);
        let error = refused(&less.to_string());
        if field == "schema_version" {
            has(error, ["missing field `schema_version`"]);
        } else {
            starts(error, &format!("r.json: {place}: there is no such field; measure again"));
        }
    }
}

#[test]
fn errors_name_file_line_and_reason() {
    let json = text(&sample::result());
    let (before, _) = json.split_once("\"started_at\": ").unwrap();
    let line = before.lines().count();
    let broken = json.replacen("\"started_at\": ", "\"started_at\": 7, \"x\": ", 1);
    let error = refused(&broken);
    starts(&error, &format!("r.json:{line}: "));
    has(&error, ["expected a string"]);
    assert!(!error.contains("column"), "{error}");
    let (cut, _) = json.split_at(json.rfind("\"totals\": ").unwrap());
    has(refused(cut), ["it was cut off"]);
    has(refused(""), ["r.json:1: ", "it is empty"]);
    has(refused("{}"), ["schema_version"]);
    let missing = read(Path::new("/nowhere/r.json")).unwrap_err();
    has(missing.to_string(), ["/nowhere/r.json", "No such file"]);
}

#[test]
fn flows_that_do_not_fit_are_refused() {
    let mut result = sample::mixed();
    assert_eq!(parse_text(&text(&result)).unwrap(), result);
    let settings = &mut result.cases[0].config.flows[1].settings;
    settings.insert("qps".to_owned(), "\u{1b}[2J".into());
    let error = refused(&text(&result));
    starts(&error, "r.json: cases[0].config.flows[1]: invalid type");
    assert!(!error.contains('\u{1b}'), "{error}");
}

#[test]
fn other_versions_are_refused_whatever_else_is_in_them() {
    for version in [0, 1, 3] {
        let text = format!("{{\"cases\": \"elsewhere\",\n\"schema_version\": {version}}}");
        let error = refused(&text);
        starts(&error, &format!("r.json:2: the file has schema_version {version}, and"));
        has(&error, ["measure again with this rocebench"]);
    }
}

#[test]
fn results_are_valid_and_damaged_ones_are_not() {
    let schema = serde_json::to_value(schema()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut result = sample::result();
    let (config, run) = sample::connect();
    result.cases.push(CaseResult { config, ..sample::case(vec![run]) });
    result.cases.extend(sample::open_loop().cases);
    let valid = serde_json::to_value(result).unwrap();
    let errors = validator.iter_errors(&valid).map(|error| error.to_string());
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0]);

    // A qps that is a word, a negative count, and so on.
    for damage in [
        "cases/0/config/qps=four",
        "cases/0/runs/0/flows/0/totals/messages=-1",
        "cases/0/runs/0/flows/0/totals=null",
        "schema_version=null",
        "cases/3/searches=null",
        "cases/4/config/rate=50",
        "cases/4/runs/0/flows/0/load/verdict=good",
    ] {
        let damaged = sample::with(&valid, damage);
        assert!(!validator.is_valid(&damaged), "{damage}");
    }
    let mut less = valid;
    let flow = less["cases"][0]["config"]["flows"][0].as_object_mut();
    assert_eq!(flow.unwrap().remove("path_mtu"), Some(json!(4096)));
    assert!(!validator.is_valid(&less));
}

#[test]
fn every_field_is_described() {
    fn undescribed(at: &str, schema: &Value, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if property["description"].as_str().is_none_or(str::is_empty) {
                found.push(format!("{at}.{name}"));
            }
        }
    }
    let schema = serde_json::to_value(schema()).unwrap();
    let mut found = Vec::new();
    undescribed("result", &schema, &mut found);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        undescribed(name, definition, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn flows_that_do_not_fit_are_named_with_their_place() {
    let fault = |change: fn(&mut ResultFile)| {
        let mut result = sample::mixed();
        assert_eq!(first_flow_fault(&result), None);
        change(&mut result);
        let (place, reason) = first_flow_fault(&result).unwrap();
        format!("{place}: {reason}")
    };
    fn set(result: &mut ResultFile, field: &str, text: &str) {
        let settings = &mut result.cases[0].config.flows[1].settings;
        settings.insert(field.to_owned(), text.into());
    }
    let unknown = fault(|result| set(result, "colour", "red"));
    let place = "cases[0].config.flows[1]";
    assert_eq!(unknown, format!("{place}: there is no setting `colour`"));
    let op = fault(|result| set(result, "op", "fly"));
    has(op, [place, "fly"]);
    let rate = fault(|result| set(result, "rate", "110%"));
    has(rate, ["`110%` is more than the closed loop's maximum"]);
    let twice = fault(|result| result.cases[0].config.flows[2].name = "small".to_owned());
    let words = "cases[0].config.flows[2]: another flow of the case is called \"small\" too";
    assert_eq!(twice, words);
    let changes: [fn(&mut ResultFile); 3] = [
        |result| result.cases[0].runs[0].flows.swap(0, 1),
        |result| drop(result.cases[0].runs[0].flows.pop()),
        |result| result.cases[0].runs[0].flows[2].to = "elsewhere".to_owned(),
    ];
    for change in changes {
        starts(fault(change), "cases[0].runs[0].flows: they are not those");
    }
}
