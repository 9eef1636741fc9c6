//! A worker that is one source for its QPs posts each message on the QP and at the time that its policy says, and counts how
//! often that QP's queue was full: against posts that were worked out by hand.

use datapath::Geometry;
use null_verbs::loopback::{self, ServiceTimes};
use settings::Stop;

use crate::bench::{Bench, US};
use crate::by_hand::{set_up, table};
use crate::loopback_node::Steer;

/// Columns: flags | time of the device, of `one` after the other or of `each` QP, or the times of the QPs | messages of each
/// QP | the slots of each worker's, as microsecond:QP | how often each found a full queue.
const POSTS: &str = "
# One at a time, in turn.
spread=round-robin qps=3 outstanding=1 | 10 one | 2 | 0:0 10:1 20:2 30:0 40:1 50:2 | 0
# As nginx does: at each choice a QP gets its weight, who has most is next and pays for all. (3,1) 0, (2,2) 0, (1,3) 1, (4,0) 0.
spread=round-robin qps=2 qp-weights=1:3,1:1 outstanding=1 | 10 one | 4 | 0:0 10:0 20:1 30:0 40:0 50:0 60:1 70:0 | 0
# The weight of a group is for its QPs in turn.
spread=round-robin qps=3 qp-weights=2:2,1:1 outstanding=1 | 10 one | 2 | 0:0 10:2 20:1 30:0 40:2 50:1 | 0
# Without a number half of all slots are under way: four of eight, and then one each 10.
spread=round-robin qps=2 tx-depth=4 | 10 one | 3 | 0:0 0:0 0:1 0:1 10:0 20:1 | 0
# Slots of two messages, one of them under way.
spread=round-robin qps=2 tx-depth=2 signal-every=2 outstanding=2 | 10 one | 4 | 0:0 20:1 40:0 60:1 | 0
# QP 1 is next at 20, and its only slot is busy until 100: the source waits for it. So it does at 110 and at 210.
spread=round-robin qps=2 outstanding=2 | 10 100 | 4 | 0:0 0:1 10:0 100:0 100:1 200:0 200:1 300:1 | 3
# Each worker is a source of its own, for its QPs.
spread=round-robin qps=4 workers=2 outstanding=1 | 10 each | 2 | 0:0 10:2 20:0 30:2; 0:1 10:3 20:1 30:3 | 0 0
# The least loaded, and of equals who has been so for longest: four at once, of which QP 0 has two. At 10 all have one: QP 1. At
# 20 QP 0 has none. At 25 all have one, QP 2 since the start. QP 0 has none at 30 and 40.
spread=least-loaded qps=3 tx-depth=4 outstanding=4 | 10 25 45 | 3 | 0:0 0:0 0:1 0:2 10:1 20:0 25:2 30:0 40:0 | 0
# QP 0 is done at 10, 20 … and is never waited for, though QP 1 is full.
spread=least-loaded qps=2 outstanding=2 | 10 100 | 3 | 0:0 0:1 10:0 20:0 30:0 40:0 | 0
# The quarter of 64 bits in which SplitMix64 of the number of the message is.
spread=hash qps=4 tx-depth=4 outstanding=1 | 10 one | 2 | 0:2 10:2 20:0 30:3 40:3 50:2 60:0 70:3 | 0
";

#[test]
fn each_message_is_where_and_when_the_policy_says() {
    for row in table(POSTS) {
        let [flags, device, each, expected, blocked] = row;
        let text = row.join(" | ");
        let times: Vec<u64> = device.split(' ').filter_map(|us| us.parse().ok()).collect();
        let column = if device.ends_with(['e', 'h']) { device } else { "1 each" };
        let mut set_up = set_up(&format!("cq=per-worker {flags}"), column, 1);
        let messages = each.parse().unwrap();
        set_up.case.set_stop(Stop::MessagesPerQp(messages));
        let (started_ns, over) = set_up.run(|bench: &mut Bench<'_>| {
            let contexts = bench.pair.client.shared.qp_contexts();
            if times.len() > 1 {
                for (context, us) in contexts.iter().zip(&times) {
                    loopback::serve_qp(context.qp.qpn(), ServiceTimes::Constant(us * US));
                }
            }
            let started_ns = bench.now_ns();
            bench.run_counted(messages, None).unwrap();
            started_ns
        });
        over.rest.assert_clean();
        let (_, shared, reports) = &over.rest.client;
        let unit = Geometry::from_flow(&set_up.case).unit as usize;
        let mut of_workers = vec![Vec::new(); reports.len()];
        for (qp, context) in shared.qp_contexts().iter().enumerate() {
            let own = over.served.iter().filter(|it| it.qp_num == context.qp.qpn());
            let posts = own.step_by(unit).map(|it| ((it.posted_ns - started_ns) / US, qp));
            of_workers[qp % reports.len()].extend(posts);
        }
        let lists = of_workers.into_iter().map(|mut posts| {
            posts.sort_unstable();
            posts.into_iter().map(|(us, qp)| format!("{us}:{qp}")).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(lists.collect::<Vec<_>>().join("; "), expected, "{text}");
        let full: Vec<String> = reports.iter().map(|report| report.blocked.to_string()).collect();
        assert_eq!(full.join(" "), blocked, "{text}");
    }
}
