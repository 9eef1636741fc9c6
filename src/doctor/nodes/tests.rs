use std::net::SocketAddr;

use super::*;
use protocol::node_report::{LockedMemory, State};
use results::model::Device;
use results::sample::has;
use serde_json::json;

fn answer(number: usize) -> Answer {
    Answer {
        address: SocketAddr::from(([192, 0, 2, 1], 18515)),
        version: "0.1.0".into(),
        host: Host { kernel: "6.1.0".into(), ..Host::default() },
        clock: Some(ClockOffset { offset_ns: 20_000 * number as i128, uncertainty_ns: 110_000 }),
        examination: NodeExamination {
            device: Some(Device {
                name: format!("mlx5_{}", number % 2),
                driver: Some("mlx5_core".into()),
                active_mtu_bytes: Some(4096),
                netdev_mtu_bytes: Some(9000),
                gid: Some("::ffff:192.0.2.1".into()),
                gid_type: Some("RoCE v2".into()),
                ..Device::default()
            }),
            locked_memory: Some(LockedMemory::Unlimited),
            ..NodeExamination::default()
        },
    }
}

fn report(answers: Vec<NodeAnswer>) -> NodesReport {
    let names = (1..=answers.len()).map(|it| format!("node{it:02}")).collect();
    NodesReport::new(names, answers)
}

fn found(report: &NodesReport) -> Vec<(State, &str)> {
    report.findings.iter().map(|it| (it.finding.state, &*it.finding.found)).collect()
}

/// Of four nodes one differs, one found something itself, one does not answer.
fn mixed() -> NodesReport {
    let mut answers: Vec<NodeAnswer> = (0..4).map(|it| Ok(answer(it))).collect();
    let [Ok(_), Ok(odd), Ok(ill), silent] = answers.as_mut_slice() else {
        panic!("four answers");
    };
    let device = odd.examination.device.as_mut().unwrap();
    (device.active_mtu_bytes, device.netdev_mtu_bytes) = (Some(1024), Some(1500));
    odd.host.kernel = "5.14.0-427.13.1.el9_4.x86_64+debug-long".into();
    ill.examination.findings = vec![
        Check::new("port", "it must").ok("ACTIVE"),
        Check::new("CPU governor", "it is slow").warning("powersave", "cpupower"),
    ];
    let why =
        "nothing listens at 192.0.2.4:18515, and this is a long reason that takes a second line";
    *silent = Err(Box::new(Check::new("reach", "it may differ").broken(why, "rocebench serve")));
    report(answers)
}

#[test]
fn healthy_nodes_differ_in_nothing() {
    let report = report((0..4).map(|it| Ok(answer(it))).collect());
    assert_eq!(found(&report), []);
    assert_eq!(report.common["RDMA MTU"], "4096");
    assert_eq!(report.common["GID"], "RoCE v2 IPv4");
    assert!(report.unknown.contains(&"PFC"));
    insta::assert_snapshot!(table::text(&report, false, false));
    assert_eq!(table::text(&report, false, true), "");
}

#[test]
fn what_differs_is_marked_and_told() {
    let report = mixed();
    let text = table::text(&report, false, false);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
    insta::assert_snapshot!(text);
    assert_eq!(report.count(State::Broken), 3);
    let difference = &report.findings[1];
    assert_eq!(difference.scope, Scope::Difference);
    assert_eq!(difference.nodes, ["node02"]);
}

#[test]
fn what_all_found_is_told_once() {
    let mut answers: Vec<NodeAnswer> = (0..3).map(|it| Ok(answer(it))).collect();
    for node in answers.iter_mut().flatten() {
        let finding = Check::new("huge pages", "why").warning("never", "try");
        node.examination.findings = vec![finding.clone(), finding];
    }
    let report = report(answers);
    assert_eq!(found(&report), [(State::Warning, "never")]);
    assert_eq!(report.findings[0].nodes.len(), 3);
    has(table::text(&report, false, false), ["all 3 nodes: never"]);
}

#[test]
fn the_document_has_facts_and_findings() {
    let document = serde_json::to_value(mixed()).unwrap();
    assert!(document["nodes"][3]["examination"].is_null());
    for (place, value) in [
        ("/nodes/1/examination/device/active_mtu_bytes", json!(1024)),
        ("/findings/0/scope", json!("reach")),
        ("/findings/0/state", json!("broken")),
        ("/findings/1/nodes/0", json!("node02")),
    ] {
        assert_eq!(document.pointer(place), Some(&value), "{place}");
    }
}

#[test]
fn nobody_answers() {
    let silent = || Err(Box::new(Check::new("reach", "why").broken("gone", "try")));
    let text = table::text(&report(vec![silent(), silent()]), false, false);
    has(text, ["2 nodes, 0 examined: 2 broken"]);
}

#[test]
fn an_answer_has_no_more_than_there_can_be() {
    let mut examination =
        NodeExamination { findings: vec![*unexamined("x"); 1000], ..NodeExamination::default() };
    examination.lossless.pfc_priorities = Some(vec![3; 1000]);
    examination.lossless.dscp_priorities = Some(vec![(3, 3); 1000]);
    let kept = bounded(examination);
    assert_eq!(kept.findings.len(), MOST_FINDINGS);
    assert_eq!(kept.lossless.pfc_priorities, Some(vec![3; PRIORITIES]));
    assert_eq!(kept.lossless.dscp_priorities.unwrap().len(), DSCPS);
}

#[test]
fn a_node_that_is_not_there_is_told_and_the_others_are_asked() {
    // Nothing listens below 10.
    let nodes: Vec<_> = (1..9)
        .map(|port| NodeAddress {
            name: format!("n{port}"),
            host: "127.0.0.1".into(),
            port,
            device: None,
        })
        .collect();
    let answers = ask_all(&nodes, None, Approach::default(), &Value::Null, &AtomicBool::new(false));
    assert_eq!(answers.len(), nodes.len());
    for answer in answers {
        let finding = answer.unwrap_err();
        assert_eq!(finding.check, "reach");
        assert!(finding.remedy.unwrap().contains("rocebench serve"));
    }
}
