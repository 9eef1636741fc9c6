//! The comparison as text for people and as documents for other programs, all from the same rows.

pub mod junit;
pub mod markdown;
pub mod programs;
mod rows;
pub mod table;
mod words;

#[cfg(test)]
mod flows_tests;
#[cfg(test)]
mod loads_tests;
#[cfg(test)]
mod mesh_tests;
#[cfg(test)]
mod sample;

#[cfg(test)]
mod tests {
    use results::sample::has;
    use std::io;

    use quick_junit::Report;

    use super::*;
    use crate::judge::compare::model::{Comparison, Verdict};

    fn text(write: impl Fn(&Comparison, &mut Vec<u8>) -> io::Result<()>) -> String {
        sample::text(|out| write(&sample::comparison(), out))
    }

    /// Snapshots lie with all others.
    fn snapshot(name: &str, text: &str) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
        insta::with_settings!({ snapshot_path => path, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("compare__{name}"), text);
        });
    }

    #[test]
    fn table_within_100_columns() {
        let table = text(|it, out| table::write(it, out));
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{table}");
        snapshot("table", &table);
    }

    #[test]
    fn markdown_for_a_pull_request() {
        snapshot("markdown", &text(|it, out| markdown::write(it, out)));
    }

    #[test]
    fn json_is_read_back() {
        let json = text(|it, out| programs::json(it, out));
        let read: Comparison = serde_json::from_str(&json).unwrap();
        let written = sample::comparison();
        for (read, written) in read.cases.iter().zip(&written.cases) {
            assert_eq!((&read.id, &read.config), (&written.id, &written.config));
            assert_eq!(read.verdict(), written.verdict());
            for (read, written) in read.metrics.iter().zip(&written.metrics) {
                // Reading may be off in the last binary digit.
                let (read, written) = (read.ratio.unwrap(), written.ratio.unwrap());
                assert!((read - written).abs() < 1e-12);
            }
        }
        let sides = [read, written].map(|it| (it.base, it.only_in_new));
        assert_eq!(sides[0], sides[1]);
        let words = ["\"verdict\": \"regressed\"", "\"metric\": \"gbit_per_s\""];
        has(&json, words);
    }

    #[test]
    fn junit_is_read_as_such_and_counts() {
        let xml = text(|it, out| junit::write(it, out));
        let report = Report::deserialize_from_str(&xml).unwrap();
        let comparison = sample::comparison();
        assert_eq!(report.test_suites.len(), comparison.cases.len() + 1);
        let figures = |verdict| {
            comparison
                .cases
                .iter()
                .flat_map(|case| &case.metrics)
                .filter(|it| it.verdict == verdict)
                .count()
        };
        let all = |verdict| figures(verdict) + comparison.over_all_with(verdict).len();
        let skipped = xml.matches("<skipped").count();
        assert_eq!(report.failures, all(Verdict::Regressed));
        assert_eq!(report.errors, comparison.cases_with(Verdict::NotComparable));
        assert_eq!(skipped, all(Verdict::Unclear));
        snapshot("junit", &xml);
    }

    #[test]
    fn bmf_keeps_to_its_schema() {
        // As in Bencher's reference of the format.
        let number = serde_json::json!({ "type": "number" });
        let schema = serde_json::json!({
            "type": "object",
            "patternProperties": { ".+": {
                "type": "object",
                "patternProperties": { ".+": {
                    "type": "object",
                    "properties": { "value": number, "lower_value": number, "upper_value": number },
                    "additionalProperties": false,
                    "required": ["value"]
                } }
            } }
        });
        let document = text(|it, out| programs::bmf(it, out));
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        jsonschema::validate(&schema, &document).unwrap();
        let bandwidth = &document["write-per-qp-q4-1MiB"]["gbit_per_s"];
        let value = |name: &str| bandwidth[name].as_f64().unwrap();
        assert!(value("lower_value") < value("value") && value("value") < value("upper_value"));
        assert!(document.get("send-per-worker-q4-64KiB").is_none());
    }

    #[test]
    fn the_action_gets_each_direction_apart() {
        let read = |bigger| -> Vec<serde_json::Value> {
            serde_json::from_str(&text(|it, out| programs::action(it, bigger, out))).unwrap()
        };
        let (bigger, smaller) = (read(true), read(false));
        assert_eq!((bigger.len(), smaller.len()), (4 * 3, 4 * 4));
        for entry in bigger.iter().chain(&smaller) {
            assert!(entry["value"].is_f64(), "{entry}");
            for name in ["name", "unit", "range", "extra"] {
                assert!(!entry[name].as_str().unwrap().is_empty(), "{entry}");
            }
        }
        let latency = |entry: &serde_json::Value| entry["name"].to_string().contains("latency");
        assert!(bigger.iter().any(|entry| entry["unit"] == "Gb/s"));
        assert!(!bigger.iter().any(latency) && smaller.iter().any(|entry| entry["unit"] == "ns"));
    }

    #[test]
    fn otava_gets_a_row_a_file_by_time_without_gaps() {
        let [mut base, new] = sample::sides();
        base.results[0].result.started_at = "2026-11-20T12:00:00.334950042Z".to_owned();
        let csv = text(|it, out| programs::otava(it, [&base, &new], out));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().unwrap().clone();
        assert!(header.iter().take(3).eq(["time", "commit", "side"]));
        assert_eq!(header.len(), 3 + 4 * 7);
        assert_eq!(&header[3], "send-shared-q16-64KiB.gbit_per_s");
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 20);
        assert_eq!(&rows[0][0], "2026-11-20T12:00:00Z");
        assert!(rows.is_sorted_by_key(|row| row[0].to_owned()));
        for row in &rows {
            let mut cells = row.iter().skip(3);
            assert!(cells.all(|cell| cell.parse::<f64>().is_ok()), "{row:?}");
        }
    }
}
