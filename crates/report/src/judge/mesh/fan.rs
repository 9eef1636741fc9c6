//! Several nodes to one, or one to several: what they move together and how evenly, over how many they are.

use serde::Serialize;
use settings::{Pattern, Settings};

use crate::observe::standing;
use results::model::{CaseResult, FlowConfig, FlowResult, Latency, ResultFile, Run};
use statistics::median;

/// Throughput that is lower by less than this part falls by chance.
const FALL: f64 = 0.05;
/// Whoever has less than this part of an even share is worth a look.
const LITTLE: f64 = 0.75;

/// The cases of an incast (or outcast) whose settings are equal, all but how many nodes send (or receive).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fan {
    /// Several nodes to one; otherwise one to several.
    pub is_in: bool,
    /// The node that all of them send to, or that sends to all of them.
    pub node: String,
    /// Each case with a run that counts, by the number of nodes.
    pub points: Vec<FanPoint>,
    /// Between which two points, by their places, throughput falls most; `None` where it does not.
    pub fall: Option<[usize; 2]>,
}

/// One case of a fan. Figures are medians over the runs in which all flows count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FanPoint {
    pub case: String,
    /// Nodes that send (or receive).
    pub fan: usize,
    /// Payload throughput of all flows together, in 10^9 bits a second.
    pub gbit_per_s: Option<f64>,
    /// 99th percentile of the latency of all flows' messages, in nanoseconds; `None` where a flow has no histogram.
    pub p99_ns: Option<f64>,
    /// Jain's index over the nodes' throughput: 1 is even, 1/n is one node alone.
    pub jain: Option<f64>,
    /// The node with the least.
    pub worst: Option<Share>,
}

/// A node's part of a fan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// The node that sends (or receives).
    pub node: String,
    /// Its throughput over an even share: 1 is even, 0 is starved.
    pub of_even: f64,
    /// Its throughput, in 10^9 bits a second.
    pub gbit_per_s: f64,
}

impl Share {
    /// Whether it is so little that the node is worth a look.
    pub fn is_little(&self) -> bool {
        self.of_even < LITTLE
    }
}

impl Fan {
    /// All fans of a file that have a run that counts, in its order.
    pub fn of_file(file: &ResultFile) -> Vec<Fan> {
        let mut fans: Vec<(Settings, Fan)> = Vec::new();
        for case in &file.cases {
            let is_in = match case.config.pattern {
                Some(Pattern::Incast(_)) => true,
                Some(Pattern::Outcast(_)) => false,
                _ => continue,
            };
            let Some((first, point)) = case.config.flows.first().zip(point(case, is_in)) else {
                continue;
            };
            let node = if is_in { &first.to } else { &first.from };
            let settings = Settings { fan_in: None, fan_out: None, ..case.config.settings.clone() };
            let known = fans
                .iter_mut()
                .rev()
                .find(|(known, fan)| fan.is_in == is_in && fan.node == *node && *known == settings);
            match known {
                Some((_, fan)) => fan.points.push(point),
                None => {
                    let fan = Fan { is_in, node: node.clone(), points: vec![point], fall: None };
                    fans.push((settings, fan));
                }
            }
        }
        for (_, fan) in &mut fans {
            fan.points.sort_by_key(|point| point.fan);
            fan.fall = fall(&fan.points);
        }
        fans.into_iter().map(|(_, fan)| fan).collect()
    }
}

/// The point with the most throughput, and that with the least of more nodes; `None` where it may be chance.
fn fall(points: &[FanPoint]) -> Option<[usize; 2]> {
    let known: Vec<(f64, usize)> = points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((point.gbit_per_s?, place)))
        .collect();
    let (most, best) = known.iter().max_by(|(one, _), (two, _)| one.total_cmp(two))?;
    let (least, worst) = known
        .iter()
        .filter(|(_, place)| points[*place].fan > points[*best].fan)
        .min_by(|(one, _), (two, _)| one.total_cmp(two))?;
    (*least < (1.0 - FALL) * most).then_some([*best, *worst])
}

/// A case, if one of its runs counts.
fn point(case: &CaseResult, is_in: bool) -> Option<FanPoint> {
    let flows = &case.config.flows;
    let runs: Vec<&Run> = case
        .runs
        .iter()
        .filter(|run| run.flows.len() == flows.len() && standing::run_counts(run))
        .collect();
    runs.first()?;
    let together: Vec<FlowResult> =
        (runs.iter()).map(|run| FlowResult::together(&run.flows)).collect();
    let rates: Vec<f64> = together.iter().filter_map(FlowResult::gbit_per_s).collect();
    let jains: Vec<f64> =
        together.iter().filter_map(|flows| Some(flows.fairness.as_ref()?.jain)).collect();
    let p99: Vec<f64> = runs
        .iter()
        .filter_map(|run| Latency::merged(&run.flows, |flow| flow.latency_ns.as_ref())?.p99)
        .map(|ns| ns as f64)
        .collect();
    let shares =
        flows.iter().enumerate().filter_map(|(index, flow)| share(index, flow, &runs, is_in));
    Some(FanPoint {
        case: case.id.clone(),
        fan: flows.len(),
        gbit_per_s: median(&rates),
        p99_ns: median(&p99),
        jain: median(&jains),
        worst: shares.min_by(|one, two| one.of_even.total_cmp(&two.of_even)),
    })
}

/// A node's part, the median over the runs.
fn share(index: usize, flow: &FlowConfig, runs: &[&Run], is_in: bool) -> Option<Share> {
    let (own, of_even): (Vec<f64>, Vec<f64>) = runs
        .iter()
        .filter_map(|run| {
            let rates: Vec<f64> =
                run.flows.iter().map(FlowResult::gbit_per_s).collect::<Option<_>>()?;
            let even = rates.iter().sum::<f64>() / rates.len() as f64;
            Some((*rates.get(index)?, even))
        })
        .filter(|(_, even)| *even > 0.0)
        .map(|(own, even)| (own, own / even))
        .unzip();
    Some(Share {
        node: if is_in { &flow.from } else { &flow.to }.clone(),
        of_even: median(&of_even)?,
        gbit_per_s: median(&own)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::mesh::{Mesh, Slow};

    #[test]
    fn an_incast_has_a_point_a_fan_in_and_tells_where_it_falls_and_who_has_least() {
        let mut fans = Fan::of_file(&Mesh::quiet(9).incast(&[8, 1, 2]));
        assert_eq!(fans.len(), 1);
        let points = &mut fans[0].points;
        assert!(points.iter().map(|it| it.fan).eq([1, 2, 8]));
        let near = |figure: Option<f64>, known: f64| (figure.unwrap() / known - 1.0).abs() < 0.01;
        assert!(points.iter().all(|it| near(it.gbit_per_s, 9.41)));
        assert!(points[2].p99_ns.is_some() && near(points[2].jain, 1.0));
        assert_eq!(fall(points), None);
        points[2].gbit_per_s = Some(6.0);
        assert_eq!(fall(points).unwrap()[1], 2);
        let slow = Mesh::quiet(9).with(Slow::Sends(3, 0.6)).incast(&[8]);
        let worst = Fan::of_file(&slow)[0].points[0].worst.clone().unwrap();
        assert_eq!((&*worst.node, worst.is_little()), ("node4", true));
    }
}
