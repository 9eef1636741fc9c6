//! Flows that begin within the window of others.

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
