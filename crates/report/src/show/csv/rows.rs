//! Rows made of what serde makes of the model: a column for each field, in the order of the fields.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, to_value};

use crate::observe::{Observation, Observed};
use results::model::{CaseFlow, ResultFile, Run};

/// Columns of every file: what a row is of, and what files are joined by.
pub(super) const KEY: [&str; 8] = ["id", "op", "qps", "size_bytes", "run", "flow", "from", "to"];

/// Fields that are in no row: histograms have their own file.
const HISTOGRAMS: [&str; 2] = ["histogram", "histogram_kbit_per_s"];

/// Each flow of each case in each run; of a case without a flow, the run.
pub(super) fn places(result: &ResultFile) -> impl Iterator<Item = (CaseFlow<'_>, Observation<'_>)> {
    Observed::of_file(result).flat_map(|Observed { flow, runs }| {
        runs.into_iter().map(move |observation| (flow.clone(), observation))
    })
}

/// Columns and their cells; that of what was not measured is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Row(Vec<(String, String)>);

impl Row {
    pub(super) fn key(flow: &CaseFlow<'_>, run: &Run) -> serde_json::Result<Row> {
        let mut row = Row::default();
        let settings = to_value(&flow.settings)?;
        row.add("id", &flow.case.id)?;
        for name in ["op", "qps", "size_bytes"] {
            row.add(name, &settings[name])?;
        }
        row.add("run", run.run)?;
        row.add_flow(flow)?;
        Ok(row)
    }

    /// The cells of a flow's name and nodes; empty where there is no flow.
    pub(super) fn add_flow(&mut self, flow: &CaseFlow<'_>) -> serde_json::Result<()> {
        self.add("flow", flow.config.map(|config| &config.name))?;
        self.add("from", flow.config.map(|config| &config.from))?;
        self.add("to", flow.config.map(|config| &config.to))
    }

    /// Adds a value; an object's fields each, with the object's name before theirs. Of an array there is a cell for the kinds
    /// of what is in it.
    pub(super) fn add(&mut self, column: &str, value: impl Serialize) -> serde_json::Result<()> {
        self.add_value(column, &to_value(value)?);
        Ok(())
    }

    fn add_value(&mut self, column: &str, value: &Value) {
        let cell = match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match column {
                        _ if HISTOGRAMS.contains(&&**name) => {}
                        "" => self.add_value(name, value),
                        _ => self.add_value(&format!("{column}_{name}"), value),
                    }
                }
                return;
            }
            Value::Array(items) => {
                let kinds = items.iter().map(|item| item["kind"].as_str());
                match kinds.collect::<Option<Vec<_>>>() {
                    Some(kinds) if !kinds.is_empty() => kinds.join("; "),
                    _ => return,
                }
            }
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        self.0.push((column.to_owned(), cell));
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.0.iter().any(|(name, _)| name == column)
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, cell)| &**cell)
    }

    fn cell(&self, column: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or("", |(_, cell)| cell)
    }
}

pub(super) type Take<'a> = &'a mut dyn FnMut(Row) -> io::Result<()>;

/// Writes the rows that `give` gives, below a header of the columns in which one of them has a value. It is asked twice:
/// the columns are known when all rows have been seen, and the rows of many QPs are too many to be kept.
pub(super) fn write(out: impl Write, give: impl Fn(Take<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut columns = Columns::default();
    give(&mut |row| {
        columns.add(row);
        Ok(())
    })?;
    let names = columns.with_values();
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(&names)?;
    give(&mut |row| Ok(writer.write_record(names.iter().map(|column| row.cell(column)))?))?;
    writer.flush()
}

/// The columns of all rows so far, and whether one has a value there.
#[derive(Default)]
struct Columns(Vec<(String, bool)>);

impl Columns {
    /// A column that is new comes after the one that it follows in its row.
    fn add(&mut self, row: Row) {
        let mut next = 0;
        for (column, cell) in row.0 {
            let is_next = self.0.get(next).is_some_and(|(name, _)| *name == column);
            let known = if is_next {
                Some(next)
            } else {
                self.0.iter().position(|(name, _)| *name == column)
            };
            let at = known.unwrap_or_else(|| {
                self.0.insert(next, (column, false));
                next
            });
            self.0[at].1 |= !cell.is_empty();
            next = at + 1;
        }
    }

    /// The key's at least, where there is no row.
    fn with_values(self) -> Vec<String> {
        if self.0.is_empty() {
            return KEY.map(str::to_owned).to_vec();
        }
        self.0.into_iter().filter(|(_, has_value)| *has_value).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use results::sample;

    fn written(rows: &[Value]) -> String {
        let row = |value: &Value| {
            let mut row = Row::default();
            row.add("", value).unwrap();
            row
        };
        sample::text(|out| write(out, |take| rows.iter().try_for_each(|value| take(row(value)))))
    }

    #[test]
    fn columns_are_in_the_order_of_the_fields_whichever_row_has_them_first() {
        let rows = [
            json!({"b": null, "c": {"x": 1, "y": null}, "e": "last"}),
            json!({"b": {"z": 2.0, "a": true}, "c": {"x": null, "y": 3}, "e": ""}),
            json!({"b": null, "c": null, "d": [1], "e": "a,\"b\""}),
        ];
        let text = "b_z,b_a,c_x,c_y,e\n,,1,,last\n2.0,true,,3,\n,,,,\"a,\"\"b\"\"\"\n";
        assert_eq!(written(&rows), text);
    }

    #[test]
    fn without_a_row_there_is_the_key() {
        assert_eq!(written(&[]), "id,op,qps,size_bytes,run,flow,from,to\n");
    }
}
