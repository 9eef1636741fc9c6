//! Several QPs apply atomics to the same eight bytes: each atomic must see a different value.

use std::collections::BTreeSet;

use softroce::transport::{State, Status};

use super::refusals::FETCH_ADD;
use super::scenario::Setup;
use super::script::Script;

const EACH: usize = 50;

#[test]
fn no_fetch_add_of_several_qps_is_lost_or_done_twice() {
    for faults in ["", "seed=3,rx.drop=5%,rx.duplicate=5%,rx.reorder=2%"] {
        let plain = Setup::plain();
        let mut script = Script::new(&Setup {
            pairs: [&plain.pairs[..]; 3].concat(),
            faults: faults.into(),
            ..plain
        });
        let counter = script.fresh(1, 8);
        let side = &mut script.testbed.sides[1];
        side.memory.put(counter, &0u64.to_ne_bytes());
        let (address, rkey) = side.remote(counter);
        let mut results = Vec::new();
        for round in 0..3 * EACH {
            let end = 2 * (round % 3);
            let testbed = &mut script.testbed;
            testbed.until("room", |testbed| testbed.endpoints[end].room() > 0);
            let result = script.fresh(0, 8);
            let element = script.testbed.sides[0].element(result);
            let operation = FETCH_ADD(address, rkey);
            script.post(end, operation, None, &[element], Status::Success);
            results.push(result);
        }
        script.testbed.drained();
        let memory = &mut script.testbed.sides[0].memory;
        let mut seen = BTreeSet::new();
        for result in results {
            memory.accept(result);
            let bytes = memory.expected(result).try_into().unwrap();
            seen.insert(u64::from_ne_bytes(bytes));
        }
        assert_eq!(seen, (0..3 * EACH as u64).collect(), "with {faults:?}");
        let total = (3 * EACH as u64).to_ne_bytes();
        script.testbed.sides[1].memory.expect(counter, &total);
        script.ends([State::Rts, State::Rts]);
    }
}
