//! Texts of faults, and what is wrong with others.

use proptest::prelude::*;

use super::super::packet_kind::KINDS;
use super::*;
use crate::wire::PacketKind;

#[test]
fn a_name_alone_is_both_directions_but_for_the_link() {
    let text = "seed=7, drop=5%,duplicate=0.01,tx.reorder=1%,rx.corrupt=0.1%,delay=1.5us,rate=10G,queue=1ms";
    let faults: Faults = text.parse().unwrap();
    let both = Direction { drop: 0.05, duplicate: 0.01, ..Direction::default() };
    let transmit = Direction {
        reorder: 0.01,
        delay_ns: 1500,
        rate_bits_per_s: Some(1e10),
        queue_ns: Some(1_000_000),
        ..both
    };
    let receive = Direction { corrupt: 0.001, ..both };
    assert_eq!((faults.seed, faults.transmit), (7, transmit));
    assert_eq!(faults.receive, receive);
    assert_eq!("".parse(), Ok(Faults::default()));
    let text = "seed=7,drop=0.05,duplicate=0.01,tx.reorder=0.01,tx.queue=1ms,tx.delay=1500ns,tx.rate=10G,rx.corrupt=0.001";
    assert_eq!(faults.to_string(), text);
}

#[test]
fn a_peer_is_an_address_in_its_shortest_form() {
    for (text, peer, shown) in [
        ("drop=1%,peer=127.0.0.5", "127.0.0.5", "peer=127.0.0.5"),
        ("peer=::ffff:10.0.0.7", "10.0.0.7", "peer=10.0.0.7"),
        ("peer = 2001:db8:0::7", "2001:db8::7", "peer=2001:db8::7"),
    ] {
        let faults: Faults = text.parse().unwrap();
        assert_eq!(faults.peer, Some(peer.parse().unwrap()), "{text}");
        assert!(faults.to_string().ends_with(shown), "{faults}");
    }
    assert_eq!("drop=1%".parse::<Faults>().unwrap().peer, None);
}

const FIVE_LOSSES: &str = "lose=ack#1,lose=ack#2,lose=ack#3,lose=ack#4,tx.lose=ack#5";

#[test]
fn errors_name_the_part_which_is_the_last_here() {
    for (text, remedy) in [
        ("drop=5%,dorp=1%", "drop, duplicate"),
        ("zx.drop=1%", "tx.drop"),
        ("tx.seed=1", "all but seed"),
        ("rx.peer=::1", "peer and down"),
        ("tx.down=1s+1s", "peer and down"),
        ("down=1s", "2s+500ms"),
        ("blackhole=1s+soon", "2s+500ms"),
        ("drop=1%/0", "drop=1%/8"),
        ("drop=90%/8", "8 of 9"),
        ("drop=100%/8", "8 of 9"),
        ("drop=5/8", "0% to 100%"),
        ("mark=101%", "mark=1%"),
        ("rx.mark=1%/8", "mark=100us"),
        ("delay=1us~2us", "delay=10us~5us"),
        ("delay=1us~", "unit"),
        ("lose=ack", "lose=ack#3"),
        ("lose=ack#0", "from 1"),
        ("lose=nak#1", "read-response"),
        (FIVE_LOSSES, "up to four"),
        ("peer=node7", "peer=10.0.0.7"),
        ("peer=10.0.0.7:4791", "peer=10.0.0.7"),
        ("drop", "drop=5%"),
        ("drop=101%", "0% to 100%"),
        ("drop=-1%", "0% to 100%"),
        ("drop=NaN", "0% to 100%"),
        ("delay=5", "delay=10us"),
        ("delay=-5us", "delay=10us"),
        ("delay=99999999999999s", "unit"),
        ("rate=0", "above 0"),
        ("rate=fast", "rate=10G"),
        ("seed=1.5", "whole number"),
        ("drop=1%,", "drop=5%"),
    ] {
        let part = format!("`{}`", text.rsplit(',').next().unwrap());
        let message = text.parse::<Faults>().unwrap_err().to_string();
        assert!(message.contains(&part), "{text}: {message}");
        assert!(message.contains(remedy), "{text}: {message}");
    }
}

#[test]
fn what_happens_to_named_packets_and_for_a_time() {
    let text = "drop=1%/8,delay=10us~5us,lose=ack#3,tx.lose=read-response#1,rx.blackhole=2s+500ms,down=1.5s+20ms";
    let faults: Faults = text.parse().unwrap();
    let nth = |kind, number| Some(NthPacket { kind, number });
    let (tx, rx) = (faults.transmit, faults.receive);
    assert_eq!((rx.drop, rx.drop_burst), (0.01, 8));
    assert_eq!((tx.delay_ns, tx.jitter_ns), (10_000, 5_000));
    let (ack, read) = (nth(Some(PacketKind::Ack), 3), nth(Some(PacketKind::ReadResponse), 1));
    assert_eq!(rx.lose[..2], [ack, None]);
    assert_eq!(tx.lose[..3], [ack, read, None]);
    assert_eq!(tx.blackhole, None);
    let hole = rx.blackhole.unwrap();
    let (begin, end) = (2_000_000_000, 2_500_000_000);
    let inside = [begin - 1, begin, end - 1, end].map(|ns| hole.has(ns));
    assert_eq!(inside, [false, true, true, false]);
    let text = "seed=0,drop=0.01/8,tx.delay=10us~5us,tx.lose=ack#3,tx.lose=read-response#1,rx.lose=ack#3,\
                rx.blackhole=2s+500ms,down=1500ms+20ms";
    assert_eq!(faults.to_string(), text);
}

#[test]
fn a_mark_is_a_share_or_a_time() {
    let faults: Faults = "mark=1%,rx.mark=100us,rx.rate=1G".parse().unwrap();
    let (tx, rx) = (faults.transmit, faults.receive);
    assert_eq!((tx.mark, tx.mark_after_ns), (0.01, None));
    assert_eq!((rx.mark, rx.mark_after_ns), (0.01, Some(100_000)));
    let text = "seed=0,mark=0.01,rx.mark=100us,rx.rate=1G";
    assert_eq!(faults.to_string(), text);
}

fn periods() -> impl Strategy<Value = Option<Period>> {
    let times = || prop_oneof![any::<u64>(), (0..10_000_u64).prop_map(|ms| ms * 1_000_000)];
    prop::option::of(
        (times(), times()).prop_map(|(after_ns, lasts_ns)| Period { after_ns, lasts_ns }),
    )
}

fn directions() -> impl Strategy<Value = Direction> {
    let often_none = || prop_oneof![Just(0.0), 0.0..=1.0];
    let losses = prop_oneof![often_none().prop_map(|drop| (drop, 0)), (0.001..0.5, 1..1000_u32),];
    let rates = prop_oneof![
        Just(None),
        (1..u64::MAX).prop_map(|it| Some(it as f64 / 1000.0)),
        (1..1000_u64).prop_map(|it| Some(it as f64 * 1e6)),
    ];
    let us = (0..1000_u64).prop_map(|us| us * 1000);
    let delays = (prop_oneof![Just(0), any::<u64>(), us], 0.0..=1.0);
    let kinds = prop::sample::select(KINDS.to_vec());
    let named = (kinds, 1..u64::MAX).prop_map(|((_, kind), number)| NthPacket { kind, number });
    let lose = prop::collection::vec(named, 0..=MOST_NAMED);
    let probabilities = (losses, often_none(), often_none(), often_none());
    let waits = || prop::option::of(any::<u64>());
    let marks = (often_none(), waits(), waits());
    let all = (probabilities, marks, delays, rates, lose, periods());
    all.prop_map(|(probabilities, marks, delays, rate, lose, blackhole)| {
        let ((drop, drop_burst), duplicate, reorder, corrupt) = probabilities;
        let (mark, mark_after_ns, queue_ns) = marks;
        let (delay_ns, jitter) = delays;
        let mut named = lose.into_iter();
        Direction {
            drop,
            drop_burst,
            duplicate,
            reorder,
            corrupt,
            mark,
            mark_after_ns,
            queue_ns,
            delay_ns,
            jitter_ns: ((delay_ns as f64 * jitter) as u64).min(delay_ns),
            rate_bits_per_s: rate,
            lose: std::array::from_fn(|_| named.next()),
            blackhole,
        }
    })
}

proptest! {
    #[test]
    fn the_text_is_read_back(
        seed: u64,
        transmit in directions(),
        other in directions(),
        same: bool,
        peer: Option<IpAddr>,
        down in periods(),
    ) {
        let receive = if same { transmit } else { other };
        let peer = peer.map(|it| it.to_canonical());
        let faults = Faults { seed, transmit, receive, peer, down };
        prop_assert_eq!(faults.to_string().parse(), Ok(faults));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z.=,%0-9GKMs~#+/ -]{0,40}") {
        if let Ok(faults) = text.parse::<Faults>() {
            prop_assert!((0.0..=1.0).contains(&faults.transmit.drop));
        }
    }
}
