//! Flows that begin within the window of others, and flows whose link fails in it.

use results::model::LinkEvent;
use testing::program::call;

/// The example of `bench-configs`, in a tenth of its time.
#[test]
fn flows_that_join_send_nothing_before_and_the_event_is_in_the_result() {
    let text = include_str!("../../bench-configs/staged.toml");
    let staged = text.replace("\"5s\"", "\"500ms\"").replace("\"10s\"", "\"1s\"");
    let words = "--config staged.toml -d soft0 --workers 1 --warmup 100ms --timeout 18";
    let ended = call(words).with_file("staged.toml", &staged).is_whole(1);
    let run = ended.runs().remove(0);
    for name in ["third", "fourth"] {
        let timeline = run.flow(name).unwrap().timeline.as_ref().unwrap();
        let samples = timeline.at_seconds.iter().zip(&timeline.messages);
        let early: u64 = samples.filter(|(at, _)| **at <= 0.5).map(|(_, count)| count).sum();
        assert_eq!(early, 0, "{name}");
        assert!(timeline.messages.iter().sum::<u64>() > 0, "{name}");
    }
    let [joined] = &run.convergence[..] else { panic!("{:?}", run.convergence) };
    assert_eq!((joined.at_seconds, joined.flows), (0.5, 4));
    assert_eq!(
        (&joined.starts[..], joined.stops.len()),
        (&["third", "fourth"].map(String::from)[..], 0)
    );
    assert_eq!(joined.seconds.is_some(), joined.unknown.is_none());
}

/// QPs outlive the hole: what it swallows is sent again after 268 ms.
#[test]
fn a_link_that_fails_and_returns_is_two_events_with_the_times_of_the_fault() {
    let words = "--config two.toml -d soft0 --workers 1 -D 6s --warmup 0 --timeout 16 --faults blackhole=3s+200ms";
    let two = "op = 'write'\n[[flow]]\nname = 'first'\n[[flow]]\nname = 'second'\n";
    let run = call(words).with_file("two.toml", two).is_whole(1).runs().remove(0);
    let [fails, returns] = &run.convergence[..] else { panic!("{:?}", run.convergence) };
    let links = [fails.link, returns.link];
    assert_eq!(links, [LinkEvent::Fails, LinkEvent::Returns].map(Some));
    let hole_ms = ((returns.at_seconds - fails.at_seconds) * 1e3).round();
    // The fault counts from the opening of the device, which is before that of the window.
    let is_within = fails.at_seconds > 0.0 && fails.at_seconds < 3.0;
    assert!(hole_ms == 200.0 && is_within, "{fails:?} {returns:?}");
    for event in [fails, returns] {
        assert_eq!((event.flows, event.starts.len(), event.stops.len()), (2, 0, 0));
        assert_eq!(event.seconds.is_some(), event.unknown.is_none(), "{event:?}");
    }
    assert!(run.path_events.iter().any(|event| event.kind.is_loss()), "{:?}", run.path_events);
}
