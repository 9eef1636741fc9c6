//! Figure: what the nodes of a run and their devices did over its time, below its throughput.

use results::model::{NodeFact, NodeState, Run};

use crate::observe::format::each_once;
use crate::show::plot::{
    draw::{Scale, Unit, style},
    figure::{Figure, Picture},
    marks::{self, Axis, Chart, Mark, Point, Series},
    spec::extent,
};

/// Nodes that are drawn; of more the first.
const MOST_NODES: usize = 6;
/// Counters that are drawn: those that tell of packets on their way.
const MOST_COUNTERS: usize = 3;
const CAPTION: &str = "What each node of the least steady run and its device did meanwhile. Facts that stayed at 0 are left out.";

/// What a fact is called at an axis.
fn title(fact: NodeFact) -> &'static str {
    match fact {
        NodeFact::Outstanding => "messages outstanding",
        NodeFact::QueueFull => "part of QPs with full send queues",
        NodeFact::ReceivesPosted => "receives posted",
        NodeFact::EmptyPolls => "part of polls that found nothing",
        NodeFact::WorkersWaiting => "workers without a core",
        NodeFact::CpusBusy => "CPUs busy",
        NodeFact::CpusStolen => "CPUs of other machines",
        NodeFact::CpusInSoftInterrupts => "CPUs in soft interrupts",
        NodeFact::Throttled => "stopped by a CPU quota",
        NodeFact::CoreMegahertz => "MHz of workers’ cores",
    }
}

/// The figure of a run that is named so; none where nothing was seen.
pub(super) fn figure(name: &str, run: &Run) -> Option<Figure> {
    let seen: Vec<(&str, &NodeState)> = run
        .nodes
        .iter()
        .filter_map(|node| Some((&*node.name, node.state.as_ref()?)))
        .take(MOST_NODES)
        .collect();
    let facts = NodeFact::ALL
        .iter()
        .filter_map(|fact| chart(title(*fact), &seen, |state| state.facts.get(fact).cloned()));
    let events = run.path_events.iter().flat_map(|event| &event.counters);
    let counters = each_once(events.cloned());
    let of_device = counters.iter().take(MOST_COUNTERS).filter_map(|counter| {
        chart(counter, &seen, |state| {
            let grown = state.counters.get(counter)?;
            Some(grown.iter().map(|count| Some(*count as f64)).collect())
        })
    });
    let charts: Vec<Chart> = facts.chain(of_device).collect();
    charts.first()?;
    let (subtitle, keys) = (name.to_owned(), marks::keys_of_charts(&charts, &[]));
    let picture = Picture { subtitle, keys, charts, ..Picture::default() };
    Some(picture.named("node-state", "Nodes over the time of the run", CAPTION))
}

/// A chart with a line for each node that has values; none without one.
fn chart(
    title: &str,
    seen: &[(&str, &NodeState)],
    values: impl Fn(&NodeState) -> Option<Vec<Option<f64>>>,
) -> Option<Chart> {
    let lines: Vec<Series> = seen
        .iter()
        .enumerate()
        .filter_map(|(number, (name, state))| {
            let of_intervals = state.at_seconds.iter().zip(values(state)?);
            Some(Series {
                name: (*name).to_owned(),
                style: style(number),
                points: of_intervals
                    .map(|(end, y)| Point { x: end * 1e9, y, ..Point::default() })
                    .collect(),
                ..Series::default()
            })
        })
        .collect();
    let (_, most) = extent(lines.iter())?;
    let ends = seen.iter().filter_map(|(_, state)| state.at_seconds.last());
    let end_ns = ends.copied().fold(0.0, f64::max) * 1e9;
    let x = Axis::new("time in the window", Scale::linear(0.0, end_ns), Unit::Nanoseconds);
    let y = Axis::new(title, Scale::from_zero(most), Unit::Plain);
    Some(Chart::new(x, y, lines.into_iter().map(Mark::Line).collect()))
}

#[cfg(test)]
mod tests {
    use results::model::{NodeResult, PathEvent, PathEventKind};
    use results::sample::node_state;

    use super::*;

    #[test]
    fn facts_of_all_nodes_share_a_chart_and_counters_are_those_of_events() {
        let nodes = ["client", "server"].map(|name| {
            let mut state = node_state("out_of_sequence", vec![0, 412, 0, 0, 0]);
            state.counters.insert("bytes_sent".to_owned(), vec![900; 5]);
            NodeResult { state: Some(state), ..NodeResult::named(name) }
        });
        let event = PathEvent {
            node: "server".to_owned(),
            kind: PathEventKind::SequenceGap,
            count: 412,
            counters: vec!["out_of_sequence".to_owned()],
        };
        let run = Run { nodes: nodes.into(), path_events: vec![event], ..Run::default() };
        let figure = figure("q4, run 1", &run).unwrap();
        for words in ["messages outstanding", "out_of_sequence", "client", "server"] {
            assert!(figure.svg.contains(words), "{words}");
        }
        assert!(!figure.svg.contains("bytes_sent"));
        assert_eq!(super::figure("q4, run 1", &Run::default()), None);
    }
}
