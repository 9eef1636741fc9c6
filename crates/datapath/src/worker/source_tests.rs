use super::*;

fn flow(spread: Spread, qps: u32, depth: u32) -> Settings {
    Settings { spread, qps, tx_depth: depth, signal_every: 1, ..Settings::default() }
}

/// The source of the only worker, without a limit of slots to post.
fn source(flow: &Settings) -> Source {
    let mine: Vec<usize> = (0..flow.qps as usize).collect();
    let mut source = Source::new(flow, &Geometry::from_flow(flow), mine.len(), 0, &mine);
    source.allow(u64::MAX, false);
    source
}

/// Posts `count` slots, each of which completes at once, and counts them by QP.
fn counts(source: &mut Source, count: usize) -> Vec<u64> {
    let mut counts = vec![0; source.queues.len()];
    for _ in 0..count {
        let next = source.next_slot().unwrap();
        counts[next.qp] += 1;
        source.completed(next.qp);
    }
    counts
}

#[test]
fn each_qp_for_itself_is_no_source() {
    let mut own = source(&flow(Spread::Own, 4, 8));
    assert!(own.queues.is_empty());
    assert_eq!(own.next_slot(), None);
}

#[test]
fn hashing_is_even_only_on_average_and_differs_between_workers() {
    let flow = flow(Spread::Hash, 8, 8);
    let of_worker = |worker| {
        let mine: Vec<usize> = (0..8).collect();
        let mut source = Source::new(&flow, &Geometry::from_flow(&flow), 8, worker, &mine);
        source.allow(u64::MAX, false);
        counts(&mut source, 80_000)
    };
    let (first, second) = (of_worker(0), of_worker(1));
    assert_ne!(first, second);
    for count in first.iter().chain(&second) {
        // Five standard deviations of a binomial distribution: 94 each.
        assert!((9_530..10_470).contains(count), "{first:?} {second:?}");
        assert_ne!(*count, 10_000);
    }
}

#[test]
fn the_last_slot_is_the_tail() {
    let mut source = source(&flow(Spread::RoundRobin, 2, 4));
    source.allow(3, true);
    let posted: Vec<NextSlot> = std::iter::from_fn(|| source.next_slot()).collect();
    let slots: Vec<(usize, u32, bool)> =
        posted.iter().map(|it| (it.qp, it.slot, it.is_tail)).collect();
    assert_eq!(slots, [(0, 0, false), (1, 0, false), (0, 1, true)]);
}
