//! Figures of open loops and of searches over loads that cannot be. It must not judge a load that is only unlikely: after
//! a stall more may complete in a window than was offered in it.

use super::figures::{Found, equals, finite, follows, latency, not_negative, positive};
use crate::results::model::{
    DoubtKind, FlowResult, Latency, Load, LoadSearch, LoadVerdict, SearchEnd, TrialOutcome,
};
use settings::Settings;

/// Windows of the workers may differ by 2 % in length before a run is doubtful, and from the one that was planned.
const WINDOWS_DIFFER: f64 = 0.05;

/// A flow has a load where it was asked for one, and what was offered is what its histograms are of.
pub(super) fn load(settings: &Settings, moved: &FlowResult) -> Found {
    latency("service time", moved.service_ns.as_ref())?;
    latency("lateness", moved.lateness_ns.as_ref())?;
    let told = match (&moved.load, settings.is_closed_loop()) {
        (None, true) => return Ok(()),
        (Some(_), true) => return Err("has a load, and is a closed loop".to_owned()),
        (None, false) => return Err(format!("lacks the load of --rate {}", settings.rate)),
        (Some(told), false) => told,
    };
    asked(settings, told)?;
    rates(told, moved)?;
    of_offered("never sent", told.never_sent, told.offered)?;
    of_offered(
        "at full send queues",
        told.queue_full_messages,
        told.offered,
    )?;
    let sent = told.offered - told.never_sent;
    let samples = |times: &Option<Latency>| times.as_ref().map_or(0, |it| it.count);
    let latencies = samples(&moved.latency_ns);
    // Those that are of rocebench's own lateness are not told.
    let are_told = moved.latency_ns.is_some() || told.verdict != LoadVerdict::NotKept;
    if told.recorded_one_in <= 1 && are_told {
        let parts = format!("its load has {} offered messages", told.offered);
        equals("latencies", latencies, &parts, told.offered.into())?;
    }
    of_offered("with a latency", latencies, told.offered)?;
    // Where messages are many, these are of a random sample.
    for (what, times) in [
        ("service times", &moved.service_ns),
        ("times of lateness", &moved.lateness_ns),
    ] {
        let samples = samples(times);
        if samples > sent || (samples == 0 && sent > 0) {
            return Err(format!("has {samples} {what} of {sent} messages sent"));
        }
    }
    served_before_seen(moved)?;
    if let Some(gaps) = &told.gaps
        && !(0.0..=1.0).contains(&gaps.p_value)
    {
        return Err(format!("has a probability of its gaps of {}", gaps.p_value));
    }
    match told.verdict {
        LoadVerdict::Kept => Ok(()),
        LoadVerdict::Overloaded if told.achieved_per_second < told.offered_per_second => Ok(()),
        LoadVerdict::Overloaded => Err("was overloaded, and achieved what was offered".to_owned()),
        LoadVerdict::NotKept if moved.window.has_doubt(DoubtKind::ScheduleNotKept) => Ok(()),
        LoadVerdict::NotKept => {
            Err("did not keep its schedule, and its window does not report that".to_owned())
        }
    }
}

/// A load is what the settings say, in whole messages a second.
fn asked(settings: &Settings, told: &Load) -> Found {
    let asked = told.asked_per_second;
    positive("a load (messages/s)", asked)?;
    if let Some(maximum) = told.maximum_per_second {
        positive("a closed loop's maximum (messages/s)", maximum)?;
    }
    let rate = settings.rate;
    let expected = match rate.share() {
        None => rate.messages_per_second(settings.mean_bytes()),
        Some(share) => told.maximum_per_second.map(|maximum| maximum * share),
    };
    match expected {
        None => Err(format!(
            "lacks the maximum that --rate {rate} is a share of"
        )),
        Some(expected) if (asked - expected).abs() <= 1.0 + 1e-6 * expected => Ok(()),
        Some(expected) => Err(format!(
            "has a load of {asked:.1} messages a second, and --rate {rate} is {expected:.1}"
        )),
    }
}

fn rates(told: &Load, moved: &FlowResult) -> Found {
    not_negative("time at full send queues (s)", told.queue_full_seconds)?;
    let seconds = moved.window.seconds;
    let a_second = |messages: u64| (seconds > 0.0).then(|| messages as f64 / seconds);
    for (what, rate, messages) in [
        ("offered_per_second", told.offered_per_second, told.offered),
        (
            "achieved_per_second",
            told.achieved_per_second,
            moved.totals.messages,
        ),
    ] {
        finite(what, rate)?;
        // Of a window without length there is no rate to follow from.
        let expected = a_second(messages).or(Some(rate));
        follows(what, Some(rate), expected, true, WINDOWS_DIFFER)?;
    }
    Ok(())
}

fn of_offered(what: &str, count: u64, offered: u64) -> Found {
    match count <= offered {
        true => Ok(()),
        false => Err(format!("has {count} messages {what} of {offered} offered")),
    }
}

/// A message is posted when it was planned or later. So where both are of all messages, latency is at least service.
fn served_before_seen(moved: &FlowResult) -> Found {
    let (Some(latency), Some(service)) = (&moved.latency_ns, &moved.service_ns) else {
        return Ok(());
    };
    if latency.count != service.count {
        return Ok(());
    }
    type Figure = fn(&Latency) -> Option<f64>;
    let figures: [(&str, Figure); 3] = [
        ("mean", |times| Some(times.mean)),
        ("p50", |times| Some(times.p50? as f64)),
        ("largest", |times| Some(times.max as f64)),
    ];
    for (name, of) in figures {
        let (Some(latency), Some(service)) = (of(latency), of(service)) else {
            continue;
        };
        // Histograms know their samples to 1 %.
        if latency < service * 0.98 {
            return Err(format!(
                "has a {name} latency of {latency} ns, below the {name} service time of {service} ns"
            ));
        }
    }
    Ok(())
}

/// A search's bounds are in order, and its trials say what it came to.
pub(super) fn search(told: &LoadSearch) -> Found {
    positive(
        "a closed loop's maximum (messages/s)",
        told.maximum_per_second,
    )?;
    positive("trials (s)", told.trial_seconds)?;
    let bounds = [
        ("a lower bound", told.lower_per_second),
        ("an upper bound", told.upper_per_second),
    ];
    for (what, bound) in bounds {
        bound.map_or(Ok(()), |bound| positive(what, bound))?;
    }
    if let (Some(lower), Some(upper)) = (told.lower_per_second, told.upper_per_second)
        && lower > upper
    {
        return Err(format!(
            "has a lower bound of {lower} above an upper bound of {upper}"
        ));
    }
    for trial in &told.trials {
        positive("a trial's load (messages/s)", trial.asked_per_second)?;
        not_negative("a trial's rate (messages/s)", trial.achieved_per_second)?;
    }
    let has = |outcome| told.trials.iter().any(|trial| trial.outcome == outcome);
    let is_lower_known = told.lower_per_second.is_some();
    let is_upper_known = told.upper_per_second.is_some();
    match told.end {
        SearchEnd::Found if !(is_lower_known && is_upper_known) => {
            Err("found a load, and lacks one of its bounds".to_owned())
        }
        SearchEnd::AllKeep if !is_lower_known => Err("lacks the load that keeps it".to_owned()),
        SearchEnd::NoneKeeps if is_lower_known => {
            Err("says that no load keeps it, and has one that does".to_owned())
        }
        SearchEnd::Found | SearchEnd::AllKeep if !has(TrialOutcome::Kept) => {
            Err("found a load that keeps it, and no trial kept it".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{of_run, of_search};
    use crate::results::model::LoadVerdict;
    use crate::results::sample::{self, rows, with};

    #[test]
    fn loads_that_can_be_are_left_alone() {
        let mut cases = sample::open_loop().cases;
        // What its window says of it is looked at before this.
        cases[2].runs[0].flows[0].load.as_mut().unwrap().verdict = LoadVerdict::Kept;
        // A sample of service times and lateness.
        let sampled = &mut cases[3].runs[0].flows[0];
        for times in [&mut sampled.service_ns, &mut sampled.lateness_ns] {
            times.as_mut().unwrap().count /= 64;
        }
        // After a stall more completes than is offered.
        let flow = &mut cases[1].runs[0].flows[0];
        let load = flow.load.as_mut().unwrap();
        load.offered -= 300_000;
        load.offered_per_second = load.offered as f64 / 2.0;
        for times in [
            &mut flow.latency_ns,
            &mut flow.service_ns,
            &mut flow.lateness_ns,
        ] {
            times.as_mut().unwrap().count -= 300_000;
        }
        for case in &cases {
            assert_eq!(of_run(&case.config, &case.runs[0]), None, "{}", case.id);
        }
    }

    const DAMAGES: &str = "
load=null | lacks the load of --rate 50%
load/offered=1200001 | has 1200000 latencies, and its load has 1200001
service_ns=null | has 0 service times of 1200000 messages sent
lateness_ns/count=1200001 | has 1200001 times of lateness of 1200000 messages sent
load/never_sent=1200001 | 1200001 messages never sent of 1200000 offered
load/queue_full_messages=18446744073709551615 | messages at full send queues of
load/queue_full_seconds=-1.0 | time at full send queues (s) of -1, below 0
load/asked_per_second=0.0 | a load (messages/s) of 0, which is not above 0
load/maximum_per_second=null | lacks the maximum that --rate 50% is a share of
load/asked_per_second=660000.0 | a load of 660000.0 messages a second, and --rate 50% is 600000.0
load/maximum_per_second=-1.0 | maximum (messages/s) of -1
load/offered_per_second=9e9 | offered_per_second of 9000000000.0000, and its
load/achieved_per_second=300000.0 | achieved_per_second of 300000.0000, and its
load/gaps/p_value=1.5 | probability of its gaps of 1.5
load/verdict=overloaded | was overloaded, and achieved what was offered
load/verdict=not_kept | its window does not report that
latency_ns/mean=2400.0 | a mean latency of 2400 ns, below the mean service time of 2503
lateness_ns/p50=5000 | has lateness with p50 5000 ns above p90
";

    #[test]
    fn loads_that_cannot_be_are_named() {
        let cases = sample::open_loop().cases;
        for [damage, told] in rows(DAMAGES) {
            let run = with(&cases[1].runs[0], &format!("flows/0/{damage}"));
            let found = of_run(&cases[1].config, &run).unwrap_or_default();
            assert!(found.contains(told), "{damage}, {told}: {found}");
        }
        // Of messages that were never sent there is no lateness.
        let run = with(&cases[3].runs[0], "flows/0/lateness_ns/count=2280000");
        let found = of_run(&cases[3].config, &run).unwrap_or_default();
        let told = "has 2280000 times of lateness of 2275000 messages sent";
        assert!(found.contains(told), "{found}");
        let mut closed = cases[0].runs[0].clone();
        closed.flows[0].load = cases[1].runs[0].flows[0].load.clone();
        let found = of_run(&cases[0].config, &closed).unwrap();
        assert_eq!(found, "has a load, and is a closed loop");
    }

    #[test]
    fn searches_that_cannot_be_are_named() {
        let search = sample::search(3);
        assert_eq!(of_search(&search), None);
        assert_eq!(of_search(&with(&search, "end=stopped")), None);
        for [damage, told] in rows(
            "
upper_per_second=null | lacks one of its bounds
upper_per_second=7e5 | lower bound of 732000 above
lower_per_second=-1.0 | a lower bound of -1
trials=[] | no trial kept it
trials/0/asked_per_second=-1.0 | a trial's load
end=none_keeps | has one that does
end=all_keep; lower_per_second=null | lacks the load that keeps it
",
        ) {
            let found = of_search(&with(&search, damage)).unwrap_or_default();
            assert!(found.contains(told), "{damage}, {told}: {found}");
        }
    }
}
