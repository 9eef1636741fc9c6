//! How long flows take until they share evenly again: pure logic over the flows' throughput over time and the instants at
//! which flows begin and end, or a link fails and comes back.

use std::collections::BTreeMap;
use std::ops::Range;

use results::model::{CaseConfig, Convergence, FlowResult, LinkEvent, Timeline};
use results::text::seconds_text;
use settings::OnTimes;

/// Intervals in a row for which shares must be even.
const HOLDS: usize = 5;

/// How far from its fair share a flow may be.
const EVEN_WITHIN: f64 = 0.1;

/// Events that are told, the first ones.
const MOST_EVENTS: usize = 100;

/// A flow, as far as it shares.
struct Member<'a> {
    name: &'a str,
    on_times: Option<OnTimes>,
    is_closed: bool,
    /// Bytes that it had moved by the end of each interval; `None` of one that was not sampled.
    moved: Option<Vec<(f64, f64)>>,
}

impl<'a> Member<'a> {
    fn new(name: &'a str, settings: &settings::Settings, timeline: Option<&Timeline>) -> Self {
        let mean_bytes = settings.mean_bytes();
        let moved = timeline.map(|timeline| {
            let mut sum = 0.0;
            let intervals = timeline.at_seconds.iter().zip(&timeline.messages);
            std::iter::once((0.0, 0.0))
                .chain(intervals.map(|(at, messages)| {
                    sum += *messages as f64 * mean_bytes;
                    (*at, sum)
                }))
                .collect()
        });
        Member { name, on_times: settings.on_times(), is_closed: settings.is_closed_loop(), moved }
    }

    fn is_on(&self, at_ns: u64) -> bool {
        self.on_times.is_none_or(|times| times.on_ns(at_ns..at_ns + 1) > 0)
    }

    /// Bytes moved by then, evenly within an interval.
    fn bytes_by(&self, at: f64) -> f64 {
        let moved = self.moved.as_deref().unwrap_or_default();
        let next = moved.partition_point(|(end, _)| *end < at);
        match (next.checked_sub(1).and_then(|last| moved.get(last)), moved.get(next)) {
            (Some((from, before)), Some((to, after))) if to > from => {
                before + (after - before) * (at - from) / (to - from)
            }
            (_, Some((_, bytes))) | (Some((_, bytes)), None) => *bytes,
            (None, None) => 0.0,
        }
    }
}

/// What became of shares after each event of a run. `link_down_ns` are the times in which a link lost all packets, after the
/// opening of the window.
pub fn convergence(
    config: &CaseConfig,
    flows: &[FlowResult],
    link_down_ns: &[(i64, i64)],
) -> Vec<Convergence> {
    let Some(window_ns) = config.window_ns() else {
        return Vec::new();
    };
    let timelines = flows.iter().filter_map(|flow| flow.timeline.as_ref());
    let Some(interval) = timelines.map(|it| it.interval_seconds).reduce(f64::max) else {
        return Vec::new();
    };
    let members: Vec<Member<'_>> = flows
        .iter()
        .enumerate()
        .map(|(index, flow)| Member::new(&flow.name, &config.flow(index), flow.timeline.as_ref()))
        .collect();
    let events = events(&members, link_down_ns, (window_ns, (interval * 1e9) as u64));
    let ends = events.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([window_ns]);
    events
        .iter()
        .zip(ends)
        .take(MOST_EVENTS)
        .map(|((at_ns, event), end_ns)| {
            let mut found = event.clone();
            let sharing: Vec<&Member<'_>> =
                members.iter().filter(|it| it.is_closed && it.is_on(*at_ns)).collect();
            found.flows = u32::try_from(sharing.len()).unwrap_or(u32::MAX);
            match until_even(&sharing, *at_ns..end_ns, interval) {
                Ok(seconds) => found.seconds = Some(seconds),
                Err(why) => found.unknown = Some(why),
            }
            found
        })
        .collect()
}

/// The events within the window, each with its time. What follows an event by less than an interval is one with it, and shares
/// count from the last of them.
fn events(
    members: &[Member<'_>],
    link_down_ns: &[(i64, i64)],
    (window_ns, interval_ns): (u64, u64),
) -> Vec<(u64, Convergence)> {
    let mut by_time: BTreeMap<u64, Convergence> = BTreeMap::new();
    for member in members {
        let stretches = member.on_times.into_iter().flat_map(|times| times.until(window_ns));
        for on in stretches.take(MOST_EVENTS + 1) {
            by_time.entry(on.start).or_default().starts.push(member.name.to_owned());
            by_time.entry(on.end).or_default().stops.push(member.name.to_owned());
        }
    }
    let edges = link_down_ns
        .iter()
        .flat_map(|(from, until)| [(*from, LinkEvent::Fails), (*until, LinkEvent::Returns)]);
    for (at_ns, link) in edges {
        if let Ok(within_ns) = u64::try_from(at_ns) {
            by_time.entry(within_ns).or_default().link = Some(link);
        }
    }
    let mut events: Vec<(u64, Convergence)> = Vec::new();
    for (at_ns, event) in by_time.range(1..window_ns) {
        match events.last_mut() {
            Some((last_ns, known)) if at_ns - *last_ns < interval_ns => {
                *last_ns = *at_ns;
                known.starts.extend(event.starts.iter().cloned());
                known.stops.extend(event.stops.iter().cloned());
                known.link = event.link.or(known.link);
            }
            _ => events.push((*at_ns, event.clone())),
        }
    }
    for (at_ns, event) in &mut events {
        event.at_seconds = *at_ns as f64 * 1e-9;
    }
    events
}

/// Seconds from the beginning of a part of the window until these flows share evenly, or why that is not known.
fn until_even(sharing: &[&Member<'_>], part_ns: Range<u64>, interval: f64) -> Result<f64, String> {
    if sharing.is_empty() {
        return Err("no flow in a closed loop is on".to_owned());
    }
    if sharing.iter().any(|member| member.moved.is_none()) {
        return Err("a flow was not sampled over time".to_owned());
    }
    let (from, end) = (part_ns.start as f64 * 1e-9, part_ns.end as f64 * 1e-9);
    // What is left by rounding is no interval less.
    let intervals = ((end - from) / interval + 1e-6) as usize;
    if intervals < 2 * HOLDS {
        let least = 2 * HOLDS;
        return Err(format!(
            "too coarse: until the next event there are {intervals} intervals of {}, and {least} are needed",
            seconds_text(interval)
        ));
    }
    let edges: Vec<f64> = (0..=intervals).map(|number| from + number as f64 * interval).collect();
    let second_half = edges.get(intervals / 2..).unwrap_or_default();
    let together: f64 = sharing
        .iter()
        .map(|member| {
            let [begun, ended] = [second_half.first(), second_half.last()]
                .map(|at| at.map_or(0.0, |at| member.bytes_by(*at)));
            ended - begun
        })
        .sum();
    let share = together / (second_half.len() - 1) as f64 / sharing.len() as f64;
    if share <= 0.0 {
        return Err("nothing was moved".to_owned());
    }
    let mut in_a_row = 0;
    for (number, (begins, ends)) in edges.iter().zip(edges.iter().skip(1)).enumerate() {
        let is_even = sharing.iter().all(|member| {
            let moved = member.bytes_by(*ends) - member.bytes_by(*begins);
            (moved - share).abs() <= EVEN_WITHIN * share
        });
        in_a_row = if is_even { in_a_row + 1 } else { 0 };
        if in_a_row == HOLDS {
            return Ok((number + 1 - HOLDS) as f64 * interval);
        }
    }
    Err(format!("not within 10 % for {HOLDS} intervals of {} in a row", seconds_text(interval)))
}

#[cfg(test)]
mod tests {
    use results::model::FlowConfig;
    use settings::Settings;

    use super::*;

    /// A flow: its settings, and what it moves in the interval with this number.
    type Moved<'a> = (&'a [(&'a str, &'a str)], &'a dyn Fn(u32) -> u64);

    /// A case of a window of 1 s with intervals of 10 ms, and its flows.
    fn case(of_flows: &[Moved<'_>]) -> (CaseConfig, Vec<FlowResult>) {
        let settings = Settings::from([("duration", "1s")]);
        let mut config = CaseConfig { settings: settings.clone(), ..CaseConfig::default() };
        let mut flows = Vec::new();
        for (number, (flags, moved)) in (1..).zip(of_flows) {
            let own: Settings = flags.iter().copied().chain([("duration", "1s")]).collect();
            let flow = FlowConfig::new(&format!("f{number}"), "client", "server", &settings, &own);
            flows.push(FlowResult {
                timeline: Some(Timeline {
                    interval_seconds: 0.01,
                    at_seconds: (1..=100).map(|at| f64::from(at) * 0.01).collect(),
                    messages: (0..100).map(moved).collect(),
                    longest_stall_seconds: None,
                }),
                ..FlowResult::new(&flow)
            });
            config.flows.push(flow);
        }
        (config, flows)
    }

    fn found(
        of_flows: &[Moved<'_>],
        link_down_ms: &[(i64, i64)],
    ) -> Vec<(String, u32, Result<u64, String>)> {
        let (config, flows) = case(of_flows);
        let down_ns: Vec<_> = link_down_ms
            .iter()
            .map(|(from, until)| (from * 1_000_000, until * 1_000_000))
            .collect();
        convergence(&config, &flows, &down_ns)
            .into_iter()
            .map(|it| {
                let at_ms = (it.at_seconds * 1e3).round();
                let event = format!("{at_ms} {}", it.event());
                let ms = it.seconds.map(|seconds| (seconds * 1e3).round() as u64);
                (event, it.flows, ms.ok_or(it.unknown.unwrap_or_default()))
            })
            .collect()
    }

    /// 100 messages in an interval, shared by two flows; the one that comes in the middle gets its half after 80 ms.
    #[test]
    fn it_takes_as_long_as_the_last_flow_needs_for_its_share() {
        let late = |at: u32| match at {
            0..50 => 0,
            50..58 => 10 + 4 * u64::from(at - 50),
            _ => 49,
        };
        let first = |at: u32| if at < 50 { 100 } else { 100 - late(at) };
        let event = ("500 f2 starts".to_owned(), 2, Ok(80));
        assert_eq!(found(&[(&[], &first), (&[("start", "500ms")], &late)], &[]), [event]);
        // Alone it has all from the interval on in which it has nine tenths of it.
        let alone = |at: u32| if at < 50 { 50 } else { (60 + 10 * u64::from(at - 50)).min(100) };
        let stops = |at: u32| if at < 50 { 50 } else { 0 };
        let stopped = ("500 f2 stops".to_owned(), 1, Ok(30));
        assert_eq!(found(&[(&[], &alone), (&[("stop", "500ms")], &stops)], &[]), [stopped]);
    }

    #[test]
    fn what_cannot_be_said_is_not_known_and_why() {
        let even = |_| 50;
        let uneven = |_| 70;
        let unknown = |of_flows: &[Moved<'_>]| {
            let mut events = found(of_flows, &[]);
            events.pop().unwrap().2.unwrap_err()
        };
        let too_late = ("start", "950ms");
        assert!(unknown(&[(&[], &even), (&[too_late], &even)]).contains("5 intervals of 0.01 s"));
        let late = ("start", "500ms");
        assert!(unknown(&[(&[], &even), (&[late], &uneven)]).contains("not within 10 %"));
        assert_eq!(unknown(&[(&[], &|_| 0), (&[late], &|_| 0)]), "nothing was moved");
        let rate = ("rate", "5000");
        assert_eq!(
            unknown(&[(&[rate], &even), (&[late, rate], &even)]),
            "no flow in a closed loop is on"
        );
    }

    #[test]
    fn a_link_that_fails_and_returns_is_two_events_and_what_is_close_is_one() {
        let fails = |at: u32| if (30..52).contains(&at) { 0 } else { 50 };
        let both: [Moved<'_>; 2] = [(&[], &fails), (&[], &fails)];
        let nothing = Err("nothing was moved".to_owned());
        assert_eq!(
            found(&both, &[(300, 500), (302, 503), (-900, -400), (1200, 1400)]),
            [
                ("302 the link fails".to_owned(), 2, nothing),
                ("503 the link returns".to_owned(), 2, Ok(20)),
            ]
        );
        let bursts = [("on", "200ms"), ("off", "200ms")];
        let events = found(&[(&bursts, &|_| 50), (&[("start", "195ms")], &|_| 50)], &[]);
        let events: Vec<_> = events.iter().map(|(event, flows, _)| (&event[..], *flows)).collect();
        assert_eq!(
            events,
            [
                ("200 f2 starts, f1 stops", 1),
                ("400 f1 starts", 2),
                ("600 f1 stops", 1),
                ("800 f1 starts", 2)
            ]
        );
    }
}
