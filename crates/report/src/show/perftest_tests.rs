use results::model::{CaseConfig, CaseResult, NodeResult};
use results::sample::{cases, flow_of, from_words, node, run, text, window};

use super::*;

/// True outputs of perftest, each with its command line.
const RECORDED: [(&str, &str); 2] = [
    ("4.5", include_str!("../../tests/perftest/4.5.txt")),
    ("6.29", include_str!("../../tests/perftest/6.29.txt")),
];

/// A file with one run of a case with these settings, whose flows move 64 KiB or 2 bytes in 2 s.
fn file(words: &str) -> ResultFile {
    let settings: Settings = from_words(words);
    let config = CaseConfig::from(settings);
    let size = u64::from(config.settings.size_bytes);
    let flows = config
        .flows
        .iter()
        .map(|flow| FlowResult { window: window(2.0), ..flow_of(&flow.name, size, &[300]) });
    let measured_nodes = [CLIENT, SERVER].map(|name| NodeResult {
        name: name.to_owned(),
        machine_cpu_seconds: Some(4.0),
        ..NodeResult::default()
    });
    let measured = Run { nodes: measured_nodes.into(), ..run(flows.collect()) };
    let case = CaseResult { config, runs: vec![measured], ..CaseResult::default() };
    let nodes = [CLIENT, SERVER].map(|name| node(name, "host", Vec::new()));
    ResultFile { nodes: nodes.into(), ..cases(vec![case]) }
}

/// Ends with these settings on 127.0.0.1.
fn ends(settings: &Settings) -> Connecting<'_> {
    let mut gid = [0; 16];
    gid[10..].copy_from_slice(&[255, 255, 127, 0, 0, 1]);
    let (rkey, address) = (0x1ff, 0x7f00_1000);
    let qp = |qpn: u32| Address { lid: 0, gid, qpn, psn: 0xab_cdef - qpn, rkey, address };
    Connecting {
        settings,
        device: "soft0",
        gid_index: Some(1),
        is_infiniband: false,
        mtu_bytes: 4096,
        outstanding_reads: 16,
        local: (0x18..0x18 + settings.qps).map(qp).collect(),
        remote: (0x1_2345..0x1_2345 + settings.qps).map(qp).collect(),
    }
}

/// What the form prints of all runs.
fn printed(form: &Form, result: &ResultFile) -> String {
    text(|out| {
        let mut table = PerftestTable::new(out, form.clone());
        for case in &result.cases {
            table.connects(&ends(&case.config.flow(0)))?;
            for run in &case.runs {
                table.run(run, result)?;
            }
        }
        table.end()
    })
}

/// What each of a wrapper's command lines prints here, in the order of what was recorded.
fn ours() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let json = Some(folder.path().join(JSON_FILE));
    let bandwidth = Form { json, ..Form::default() };
    let gbits = Form { in_gbits: true, ..Form::default() };
    let bare = Form { only: Some(Figure::Bandwidth), ..Form::default() };
    let latency = "ping-pong=true size=2";
    let mut outputs = Vec::new();
    for (form, words) in [
        (&bandwidth, "iters=300"),
        (&gbits, "op=write qps=2 duration=2"),
        (&bandwidth, &*format!("{latency} iters=1000")),
        (&Form::default(), &*format!("{latency} duration=2")),
        (&bare, "iters=300"),
    ] {
        outputs.push(printed(form, &file(words)));
        if let Some(path) = &form.json {
            outputs.push(std::fs::read_to_string(path).unwrap());
        }
    }
    outputs
}

fn recorded(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("\n$ ").skip(1).filter_map(|part| part.split_once('\n'))
}

/// The columns' names, as words, and the numbers below: what wrappers do with the table. They skip lines with `#bytes` or
/// `---`, and take lines that begin with a whole number and have four fields (k8s-netperf), or this number, another
/// one and figures (ROCm/cvs) of digits and points alone (crucible's bench-perftest, k8s-launch-kit); or the line below the
/// head (DCPerf).
fn table(output: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let head = output.lines().find(|line| line.contains("#bytes")).unwrap_or_default();
    let rows = output
        .lines()
        .filter(|line| !line.contains("#bytes") && !line.contains("---"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| {
            let is_plain = |it: &&str| it.chars().all(|c| c.is_ascii_digit() || c == '.');
            fields.len() >= 4
                && fields[..2].iter().all(|it| it.parse::<u64>().is_ok())
                && fields.iter().all(is_plain)
        })
        .map(|fields| fields.iter().map(|field| field.parse().unwrap()).collect());
    // 4.5 means MiB, and says MB.
    let names = head.replace("[MB/", "[MiB/");
    (names.split_whitespace().map(str::to_owned).collect(), rows.collect())
}

/// The rows that are printed of a file with these settings.
fn rows(form: &Form, words: &str) -> Vec<Vec<f64>> {
    table(&printed(form, &file(words))).1
}

/// The lines above the columns, without numbers: some take QPNs from them, all beginning with `0x`.
fn header(output: &str) -> Vec<String> {
    let lines = output.lines().take_while(|line| !line.contains("#bytes"));
    let mask = |word: &str| match word.contains(|c: char| c.is_ascii_digit()) {
        true if word.starts_with("0x") => "0x#".to_owned(),
        true => "#".to_owned(),
        false => word.to_owned(),
    };
    lines.map(|line| line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")).collect()
}

/// A number of a line of the JSON, as ngc_multinode_perf takes it: between a colon and a comma.
fn number(json: &str, key: &str) -> Option<f64> {
    let line = json.lines().find(|line| line.contains(key))?;
    line.split([':', ',']).nth(1)?.trim().parse().ok()
}

/// The keys of perftest's JSON, whose strings 4.5 does not quote.
fn keys(output: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(key, _)| key.trim().trim_matches('"').to_owned()).collect()
}

#[test]
fn wrappers_read_the_same_fields_of_both_programs() {
    let printed_here = ours();
    for (version, file) in RECORDED {
        let all: Vec<_> = recorded(file).collect();
        assert_eq!(all.len(), printed_here.len(), "{version}");
        for ((command, theirs), ours) in all.iter().zip(&printed_here) {
            let place = format!("perftest {version}, {command}");
            if command.starts_with("cat") {
                let own: Value = serde_json::from_str(ours).unwrap();
                let mut names = keys(ours);
                assert_eq!(
                    own["results"].as_object().unwrap().len()
                        + own["test_info"].as_object().unwrap().len()
                        + 2,
                    names.len()
                );
                // 4.5 knows no other GPUs; a server of SEND writes its file over the client's here.
                names.retain(|key| version != "4.5" || !key.starts_with("Use_"));
                let depths = |key: &str| key.replace("RX_depth", "TX_depth");
                let their_names: Vec<_> = keys(theirs).iter().map(|key| depths(key)).collect();
                assert_eq!(names, their_names, "{place}");
                let of_ngc = ["BW_average", "t_avg"];
                assert_eq!(
                    of_ngc.map(|key| number(ours, key).is_some()),
                    of_ngc.map(|key| number(theirs, key).is_some())
                );
            } else if command.contains("--output") {
                let number = |text: &str| text.lines().last().unwrap().parse::<f64>();
                assert!(number(theirs).is_ok() && number(ours).is_ok(), "{place}");
                assert_eq!(ours.lines().count(), 1, "{place}");
            } else {
                let ((names, rows), (own_names, own_rows)) = (table(theirs), table(ours));
                assert_eq!((own_names, own_rows.len()), (names, rows.len()), "{place}");
                assert_eq!(own_rows[0].len(), rows[0].len(), "{place}");
                if theirs.contains("address") {
                    assert_eq!(header(ours), header(theirs), "{place}");
                }
            }
        }
    }
}

#[test]
fn figures_are_in_the_units_of_the_heads() {
    // 300 x 64 KiB in 2 s.
    assert_eq!(rows(&Form::default(), "iters=300"), [[65536.0, 300.0, 9.38, 9.38, 0.00015]]);
    let gbits = Form { in_gbits: true, without_peak: true, ..Form::default() };
    // 2 x 300 x 64 KiB x 8 bits in 2 s.
    assert_eq!(rows(&gbits, "iters=300 bidirectional=true"), [[65536.0, 300.0, 0.0, 0.16, 0.0003]]);
    // 11, 22, 33 ... 11,000 ns, to three digits: 11,000 is in a bucket up to 11,007.
    assert_eq!(
        rows(&Form::default(), "ping-pong=true size=2 iters=300"),
        [[2.0, 300.0, 0.01, 11.01, 5.5, 5.51, 3.18, 10.89, 10.99]]
    );
    assert_eq!(
        rows(&Form::default(), "ping-pong=true size=2 duration=2"),
        [[2.0, 300.0, 5.51, 150.0]]
    );
}

#[test]
fn a_run_without_figures_has_no_row_and_a_server_of_reads_no_table() {
    let mut failed = file("iters=300");
    failed.cases[0].runs[0].failure = Some(results::model::Failure::default());
    assert_eq!(table(&printed(&Form::default(), &failed)).1.len(), 0);
    let server = Form { is_server: true, ..Form::default() };
    let of_server = printed(&server, &file("op=read ping-pong=true size=2 iters=300"));
    assert!(of_server.contains("PSN 0xabcdd7 OUT 0x10 RKey"), "{of_server}");
    assert_eq!(table(&of_server), (vec![], vec![]));
}

#[test]
fn a_run_without_an_end_has_its_header_a_row_each_period_and_the_last_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(JSON_FILE);
    let (json, least_mmsg_per_s) = (Some(path.clone()), Some(0.06));
    let form = Form { is_endless: true, json, least_mmsg_per_s, ..Form::default() };
    let mut missed = Vec::new();
    let shown = text(|out| {
        let mut table = PerftestTable::new(out, form);
        table.connects(&ends(&from_words("duration=2 op=write")))?;
        for messages in [100_000, 150_000] {
            missed.push(table.missed().is_some());
            table.period(&Totals::in_window(messages, messages << 16, 0, 2.0))?;
        }
        missed.push(table.missed().is_some());
        table.end()
    });
    assert_eq!((missed, header(&shown).len()), (vec![false, true, false], 21), "{shown}");
    let rows = [[65536.0, 1e5, 0.0, 3125.0, 0.05], [65536.0, 1.5e5, 0.0, 4687.5, 0.075]];
    assert_eq!(table(&shown).1, rows);
    let last = std::fs::read_to_string(path).unwrap();
    assert_eq!((number(&last, "BW_average"), number(&last, "Mtu")), (Some(4687.5), Some(4096.0)));
}

#[test]
fn both_ends_print_perftests_forms() {
    let of_client = Form { with_cpu: true, ..Form::default() };
    let of_server = Form { is_server: true, ..Form::default() };
    let mut shown = printed(&of_client, &file("iters=300 post-list=4 bidirectional=true op=send"));
    shown += &text(|out| PerftestTable::new(out, of_server.clone()).waits());
    shown += &printed(&of_server, &file("ping-pong=true size=2 iters=300"));
    shown += &ours().remove(1);
    insta::assert_snapshot!("perftest", shown);
}
