//! Values that are extreme but possible, in every field: what is written is read back.

use proptest::prelude::*;
use serde_json::Value;

use crate::load::load;
use crate::model::ResultFile;
use crate::{json, sample};

/// Thirty days.
const LONGEST_SECONDS: u32 = 30 * 24 * 3600;

/// Ten years of uptime.
const UPTIME_NS: i64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// Writes the result and reads it as `compare` and `plot` do.
fn written_and_loaded(result: &ResultFile) -> Result<ResultFile, TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    json::write(result, &path).unwrap();
    let mut found = load(&[&path]);
    prop_assert!(found.refused.is_empty(), "{:?}", found.refused);
    Ok(found.results.remove(0).result)
}

/// Puts an extreme value of its type into each number of a result.
fn stretch(value: &mut Value, schema: &Value, root: &Value, next: &mut impl FnMut() -> usize) {
    let present = schema["anyOf"].get(0).unwrap_or(schema);
    let pointer = present["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    let definition = pointer.and_then(|path| root.pointer(path)).unwrap_or(present);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                // A case's settings and its flows have limits of their own.
                if name == "schema_version" || name == "config" {
                    continue;
                }
                let of_field = &definition["properties"][name];
                let of_map = &definition["additionalProperties"];
                stretch(field, if of_field.is_null() { of_map } else { of_field }, root, next);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| stretch(item, &definition["items"], root, next));
        }
        Value::Number(_) => {
            let values: &[Value] = &match definition["format"].as_str().expect("a number's format")
            {
                "uint8" => [0, u8::MAX].map(Value::from).to_vec(),
                "uint16" => [0, u16::MAX].map(Value::from).to_vec(),
                "uint32" => [0, 16_384, u32::MAX].map(Value::from).to_vec(),
                "uint64" | "uint" => [0, (1 << 53) + 1, i64::MAX.unsigned_abs(), 1 << 63, u64::MAX]
                    .map(Value::from)
                    .to_vec(),
                "int64" => [i64::MIN, -UPTIME_NS, 0, UPTIME_NS, i64::MAX].map(Value::from).to_vec(),
                "double" => [0.0, 1e-9, f64::from(LONGEST_SECONDS), 1e22, f64::MAX]
                    .map(Value::from)
                    .to_vec(),
                other => panic!("a number of {other}"),
            };
            *value = values[next() % values.len()].clone();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_number_that_its_type_holds_is_read_back(choices in proptest::collection::vec(0usize..60, 1..40)) {
        let schema = json::schema().to_value();
        let mut choices = choices.into_iter().cycle();
        for result in [sample::result(), sample::open_loop(), sample::mixed()] {
            let mut value = serde_json::to_value(result).unwrap();
            stretch(&mut value, &schema, &schema, &mut || choices.next().unwrap_or(0));
            let stretched: ResultFile = serde_json::from_value(value).unwrap();
            prop_assert_eq!(written_and_loaded(&stretched)?, stretched);
        }
    }
}

#[test]
fn a_run_of_the_most_qps_is_read_back() {
    let mut result = sample::result();
    let flow = &mut result.cases[0].runs[0].flows[0];
    flow.qps = (0..16_384).map(|index| sample::qp(index, 1 << 40)).collect();
    assert_eq!(written_and_loaded(&result).unwrap(), result);
}
