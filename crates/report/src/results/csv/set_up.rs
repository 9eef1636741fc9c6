//! The columns of what a run of `connect` measured.

use super::cell::cell;
use crate::results::model::{Connect, Latency};

/// Steps that have columns, in order.
const STEPS: [&str; 9] = [
    "create", "init", "exchange", "rtr", "rts", "destroy", "resolve", "route", "connect",
];

/// How many columns there are.
pub(super) const COLUMNS: usize = 10 + 4 * STEPS.len();

/// In the order of the columns.
pub(super) fn cells(connect: &Connect) -> Vec<String> {
    let mut cells = vec![
        connect.rounds.to_string(),
        connect.connections.to_string(),
        connect.seconds.to_string(),
        cell(connect.connections_per_second),
        cell(connect.traffic_alone_gbit_per_s),
    ];
    cells.extend(time_cells(connect.setup_ns.as_ref()));
    for name in STEPS {
        let step = connect.steps.iter().find(|step| step.step == name);
        cells.extend(time_cells(step.map(|step| &step.time_ns)));
    }
    cells.push(cell(connect.stale_rejections));
    cells
}

fn time_cells(time: Option<&Latency>) -> [String; 4] {
    [
        cell(time.map(|time| time.min)),
        cell(time.map(|time| time.mean)),
        cell(time.and_then(|time| time.p99)),
        cell(time.map(|time| time.max)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::tests::assert_same;
    use super::super::write_to;
    use super::STEPS;
    use crate::results::model::ResultFile;
    use crate::results::sample;

    #[test]
    fn set_up_stands_in_the_row_of_all() {
        let (config, mut run) = sample::connect();
        for is_by_cm in [false, true] {
            if is_by_cm {
                let connect = run.connect.as_mut().unwrap();
                for (step, name) in connect.steps.iter_mut().zip(&STEPS[3..]) {
                    step.step = (*name).to_owned();
                }
                connect.stale_rejections = Some(7);
            }
            let mut result = sample::result();
            result.cases.truncate(1);
            result.cases[0].config = config.clone();
            result.cases[0].runs = vec![run.clone()];
            check(&result);
        }
    }

    fn check(result: &ResultFile) {
        let json = serde_json::to_value(result).unwrap();
        let mut out = Vec::new();
        write_to(result, &mut out).unwrap();
        let mut reader = ::csv::Reader::from_reader(out.as_slice());
        let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        let all = &rows[0];
        assert_eq!((&*all["op"], &*all["traffic_qps"]), ("connect", "2"));
        let connect = &json["cases"][0]["runs"][0]["connect"];
        for name in ["rounds", "connections", "seconds", "connections_per_second"] {
            assert_same(all, &format!("connect_{name}"), &connect[name]);
        }
        assert_same(all, "connect_setup_ns_p99", &connect["setup_ns"]["p99"]);
        let stale = &connect["stale_rejections"];
        assert_same(all, "connect_stale_rejections", stale);
        let steps = connect["steps"].as_array().unwrap();
        for name in STEPS {
            let told = steps.iter().find(|it| it["step"] == name);
            for part in ["min", "mean", "p99", "max"] {
                let column = format!("connect_{name}_ns_{part}");
                match told {
                    Some(told) => assert_same(all, &column, &told["time_ns"][part]),
                    None => assert_eq!(all[&column], ""),
                }
            }
        }
        assert_eq!(rows[1]["connect_connections"], "", "not a QP's");
        assert_eq!(rows[1]["traffic_qps"], "2");
    }
}
