//! One source of messages for several QPs, and messages of several sizes, end to end with every byte checked.

use settings::Spread;

use crate::whole;
use testing::program::call;

#[test]
fn sizes_by_weight_arrive_whole() {
    let ended = call(
        "-d soft0 --op send,write,read --cq shared,per-qp --size-mix 64:9,64K:1 -q 5 -t 8 -n 80 -I 0,64 --timeout 18 \
         --warmup 0 --verify",
    )
    // A READ carries nothing inline.
    .is_whole(10);
    ended.shows(&["64B:9,64KiB:1"]);
    for case in ended.result().cases {
        // Five rings of 8 WRs are dealt four rounds of ten, and each WR is posted ten times.
        let bytes = case.runs[0].flows[0].totals.bytes;
        assert_eq!(bytes, 40 * (9 * 64 + 65_536), "{}", case.id);
        let mix = case.config.size_mix.as_ref().map(ToString::to_string);
        assert_eq!(mix.as_deref(), Some("64B:9,64KiB:1"));
        assert_eq!(case.config.size_bytes, 65_536);
    }
}

#[test]
fn a_source_spreads_messages_as_asked() {
    let spread = "--spread round-robin,least-loaded,hash --cq per-worker,per-qp --outstanding 5";
    let words = format!("--op send,write,read {spread} --workers 2 -q 6 -t 4 -Q 1 -s 300 -n 50");
    for case in whole(&words, 18).result().cases {
        let (run, id) = (&case.runs[0], &case.id);
        let messages: Vec<u64> = run.flows[0].qps.iter().map(|qp| qp.messages).collect();
        let blocked = run.nodes[0].workers.iter().map(|worker| worker.blocked);
        match case.config.spread {
            Spread::RoundRobin => assert_eq!(messages, [50; 6], "{id}"),
            Spread::LeastLoaded => assert_eq!(blocked.sum::<u64>(), 0, "{id}"),
            _ => assert_ne!(messages, [50; 6], "{id}"),
        }
        assert!(messages.iter().all(|messages| *messages > 0), "{id}");
    }
}
