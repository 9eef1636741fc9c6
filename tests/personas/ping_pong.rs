//! Ping-pongs on adapters of several makers and kinds of links.

use plan::{Nodes, Sweep};
use rocebench::coordinator::interface::SweepOptions;
use settings::Given;
use testing::null_library::persona;

use super::networks::{Serving, options, port_request, run, swept};

#[test]
fn each_operation_is_answered() {
    for name in ["connectx7", "connectx7_vf", "infiniband_ndr", "irdma_roce", "thor2"] {
        let (machine, locks) = (persona(name), tempfile::tempdir().unwrap());
        let of = || options(&machine, port_request(None, None), locks.path());
        let serving = Serving::start(of());
        let given = Given::from([
            ("op", "send,write,read,write-imm"),
            ("ping-pong", "true"),
            ("size", "64"),
            ("qps", "3"),
            ("iters", "8"),
            ("warmup", "0"),
        ]);
        let answered = SweepOptions {
            sweep: Sweep::new(&given).unwrap(),
            ..swept(serving.target(), of(), Nodes::TwoEnds, Vec::new())
        };
        let result = run(&answered).0.unwrap();
        assert_eq!(result.cases.len(), 4);
        for case in &result.cases {
            let run = &case.runs[0];
            assert!(run.complete, "{name} {}: {:?}", case.id, run.failure);
            let latency = run.flows[0].latency_ns.as_ref().unwrap();
            assert_eq!(latency.count, 24, "{name} {}", case.id);
        }
    }
}
