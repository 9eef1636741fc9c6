//! Figures of open loops and of searches over loads that cannot be. It must not judge a load that is only unlikely: after
//! a stall more may complete in a window than was offered in it.

use super::figures::{Found, at_most, equals, near, none_below_zero, positive, unless};
use crate::model::{FlowResult, Latency, Load, LoadSearch, LoadVerdict, SearchEnd, TrialOutcome};
use settings::Settings;

/// Windows of the workers may differ by 2 % in length before a run is doubtful, and from the one that was planned.
const WINDOWS_DIFFER: f64 = 0.05;

/// A flow has a load where it was asked for one, and what was offered is what its histograms are of.
pub(super) fn load(settings: &Settings, moved: &FlowResult) -> Found {
    let told = match (&moved.load, settings.is_closed_loop()) {
        (None, true) => return Ok(()),
        (Some(_), true) => return Err("has a load, and is a closed loop".to_owned()),
        (None, false) => return Err(format!("lacks the load of --rate {}", settings.rate)),
        (Some(told), false) => told,
    };
    asked(settings, told)?;
    rates(told, moved)?;
    let (offered, never, full) = (told.offered, told.never_sent, told.queue_full_messages);
    at_most("messages never sent", never, "offered", offered)?;
    at_most("messages at full send queues", full, "offered", offered)?;
    let sent = offered - never;
    let samples = |times: &Option<Latency>| times.as_ref().map_or(0, |it| it.count);
    let latencies = samples(&moved.latency_ns);
    // Percentiles that rocebench's own lateness spoils are absent.
    let are_told = moved.latency_ns.is_some() || told.verdict != LoadVerdict::NotKept;
    if told.recorded_one_in <= 1 && are_told {
        equals("latencies", latencies, "there were offered", offered.into())?;
    }
    at_most("latencies", latencies, "messages offered", offered)?;
    // Where messages are many, these are of a random sample.
    for (what, times) in [
        ("service times", samples(&moved.service_ns)),
        ("times of lateness", samples(&moved.lateness_ns)),
    ] {
        let is_possible = times <= sent && (times > 0 || sent == 0);
        unless(is_possible, || format!("has {times} {what} of {sent} messages sent"))?;
    }
    served_before_seen(moved)
}

/// A load is what the settings say, in whole messages a second.
fn asked(settings: &Settings, told: &Load) -> Found {
    let (asked, maximum) = (told.asked_per_second, told.maximum_per_second);
    let rate = settings.rate;
    positive("a load (messages/s)", asked)?;
    positive("a closed loop's maximum (messages/s)", maximum)?;
    let expected = match rate.share() {
        None => rate.messages_per_second(settings.mean_bytes()),
        Some(share) => maximum.map(|maximum| maximum * share),
    };
    let expected =
        expected.ok_or_else(|| format!("lacks the maximum that --rate {rate} is a share of"))?;
    unless((asked - expected).abs() <= 1.0 + 1e-6 * expected, || {
        format!("has a load of {asked:.1} messages a second, and --rate {rate} is {expected:.1}")
    })
}

fn rates(told: &Load, moved: &FlowResult) -> Found {
    let (seconds, completed) = (moved.window.seconds, moved.totals.messages);
    for (what, rate, messages) in [
        ("offered_per_second", told.offered_per_second, told.offered),
        ("achieved_per_second", told.achieved_per_second, completed),
    ] {
        // Of a window without length there is no rate to follow from.
        if seconds > 0.0 {
            near(what, rate, messages as f64 / seconds, WINDOWS_DIFFER)?;
        }
    }
    Ok(())
}

/// A message is posted when it was planned or later. So where both are of all messages, latency is at least service.
fn served_before_seen(moved: &FlowResult) -> Found {
    let (Some(latency), Some(service)) = (&moved.latency_ns, &moved.service_ns) else {
        return Ok(());
    };
    if latency.count != service.count {
        return Ok(());
    }
    let figures = |times: &Latency| {
        let (p50, most) = (times.p50.map(|ns| ns as f64), times.max as f64);
        [("mean", Some(times.mean)), ("p50", p50), ("largest", Some(most))]
    };
    for ((name, latency), (_, service)) in figures(latency).into_iter().zip(figures(service)) {
        // Histograms know their samples to 1 %.
        if let (Some(latency), Some(service)) = (latency, service)
            && latency < service * 0.98
        {
            let of_service = format!("below the {name} service time of {service} ns");
            return Err(format!("has a {name} latency of {latency} ns, {of_service}"));
        }
    }
    Ok(())
}

/// A search's bounds are in order, and its trials say what it came to.
pub(super) fn search(told: &LoadSearch) -> Found {
    none_below_zero(told)?;
    let maximum = told.maximum_per_second;
    positive("a closed loop's maximum (messages/s)", maximum)?;
    positive("trials (s)", told.trial_seconds)?;
    let (lower, upper) = (told.lower_per_second, told.upper_per_second);
    positive("a lower bound", lower)?;
    positive("an upper bound", upper)?;
    if let (Some(lower), Some(upper)) = (lower, upper)
        && lower > upper
    {
        let of_upper = format!("above an upper bound of {upper}");
        return Err(format!("has a lower bound of {lower} {of_upper}"));
    }
    for trial in &told.trials {
        positive("a trial's load (messages/s)", trial.asked_per_second)?;
    }
    let mut outcomes = told.trials.iter().map(|trial| trial.outcome);
    let was_kept = outcomes.any(|it| it == TrialOutcome::Kept);
    let found = match (told.end, lower, upper) {
        (SearchEnd::Found, None, _) | (SearchEnd::Found, _, None) => {
            "found a load, and lacks one of its bounds"
        }
        (SearchEnd::AllKeep, None, _) => "lacks the load that keeps it",
        (SearchEnd::NoneKeeps, Some(_), _) => "says that no load keeps it, and has one that does",
        (SearchEnd::Found | SearchEnd::AllKeep, ..) if !was_kept => {
            "found a load that keeps it, and no trial kept it"
        }
        _ => return Ok(()),
    };
    Err(found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::of_run;
    use super::super::tests::assert_named;
    use super::search;
    use crate::sample::{self, with};

    #[test]
    fn loads_that_can_be_are_left_alone() {
        let mut cases = sample::open_loop().cases;
        let sampled = "flows/0/service_ns/count=35546; flows/0/lateness_ns/count=35546";
        // After a stall more completes than is offered.
        let stalled = "flows/0/load/offered=900000; flows/0/load/offered_per_second=450000.0; \
                       flows/0/latency_ns/count=900000; flows/0/service_ns/count=900000; \
                       flows/0/lateness_ns/count=900000";
        for (case, change) in [(3, sampled), (1, stalled)] {
            cases[case].runs[0] = with(&cases[case].runs[0], change);
        }
        for case in &cases {
            assert_eq!(of_run(&case.config, &case.runs[0]), Ok(()), "{}", case.id);
        }
    }

    const DAMAGES: &str = "
flows/0/load=null | lacks the load of --rate 50%
flows/0/load/offered=1200001 | has 1200000 latencies, and there were offered 1200001
flows/0/service_ns=null | has 0 service times of 1200000 messages sent
flows/0/lateness_ns/count=1200001 | has 1200001 times of lateness of 1200000 messages sent
flows/0/load/never_sent=1200001 | 1200001 messages never sent of 1200000 offered
flows/0/load/queue_full_messages=18446744073709551615 | messages at full send queues of
flows/0/load/queue_full_seconds=-1.0 | load.queue_full_seconds of -1
flows/0/load/asked_per_second=0.0 | a load (messages/s) of 0, which is not above 0
flows/0/load/maximum_per_second=null | lacks the maximum that --rate 50% is a share of
flows/0/load/asked_per_second=660000.0 | a load of 660000.0 messages a second, and --rate 50% is 600000.0
flows/0/load/maximum_per_second=-1.0 | load.maximum_per_second of -1.0, which is below 0
flows/0/load/maximum_per_second=0.0 | maximum (messages/s) of 0, which is not above 0
flows/0/load/offered_per_second=9e9 | offered_per_second of 9000000000.0000, and its
flows/0/load/achieved_per_second=300000.0 | achieved_per_second of 300000.0000, and its
flows/0/latency_ns/mean=2400.0 | a mean latency of 2400 ns, below the mean service time of 2503
flows/0/lateness_ns/p50=5000 | has lateness with p50 5000 ns above p90
";

    #[test]
    fn loads_that_cannot_be_are_named() {
        let cases = sample::open_loop().cases;
        assert_named(&cases[1].runs[0], DAMAGES, |run| of_run(&cases[1].config, run));
        // Of messages that were never sent there is no lateness.
        let late = "flows/0/lateness_ns/count=2280000 | \
                    has 2280000 times of lateness of 2275000 messages sent";
        assert_named(&cases[3].runs[0], late, |run| of_run(&cases[3].config, run));
        let mut closed = cases[0].runs[0].clone();
        closed.flows[0].load = cases[1].runs[0].flows[0].load.clone();
        let found = of_run(&cases[0].config, &closed).unwrap_err();
        assert_eq!(found, "has a load, and is a closed loop");
    }

    #[test]
    fn searches_that_cannot_be_are_named() {
        let told = sample::search(3);
        assert_eq!(search(&told), Ok(()));
        assert_eq!(search(&with(&told, "end=stopped")), Ok(()));
        let damages = "
upper_per_second=null | lacks one of its bounds
upper_per_second=7e5 | lower bound of 732000 above
lower_per_second=-1.0 | lower_per_second of -1.0, which is below 0
lower_per_second=0.0 | a lower bound of 0
trials=[] | no trial kept it
trials/0/asked_per_second=0.0 | a trial's load
trials/0/achieved_per_second=-1.0 | trials[0].achieved_per_second of -1
end=none_keeps | has one that does
end=all_keep; lower_per_second=null | lacks the load that keeps it
";
        assert_named(&told, damages, search);
    }
}
