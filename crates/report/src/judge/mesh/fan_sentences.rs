//! What an incast or an outcast says, as sentences with figures. It must not judge nodes: `outliers` does.

use super::fan::{Direction, Fan, FanPoint};
use super::words::{figure, number, percent};
use crate::observe::Metric;
use crate::observe::format::{NOT_MEASURED, plural};

/// Goodput that is lower by less than this part falls by chance.
const FALL: f64 = 0.05;
/// Whoever has less than this part of an even share is worth a look.
const LITTLE: f64 = 0.75;

impl Fan {
    /// What is to be told of it: goodput and p99 over how many nodes there are, how even it is, and who has least.
    pub fn sentences(&self) -> Vec<String> {
        let points: Vec<&FanPoint> = self.points.iter().filter(|it| it.runs > 0).collect();
        let Some(last) = points.last() else {
            return Vec::new();
        };
        let (who, way) = match self.direction {
            Direction::In => ("sender", "to"),
            Direction::Out => ("receiver", "from"),
        };
        let node = &self.node;
        let mut told = Vec::new();
        if points.len() > 1 {
            let fans: Vec<String> = points.iter().map(|point| point.fan.to_string()).collect();
            let list = |quantity, of: fn(&FanPoint) -> Option<f64>| {
                let figures = points.iter().map(|point| match of(point) {
                    Some(value) => number(quantity, value),
                    None => NOT_MEASURED.to_owned(),
                });
                figures.collect::<Vec<_>>().join(", ")
            };
            let goodput = list(Metric::GbitPerS, |point| point.gbit_per_s);
            let p99 = match points.iter().any(|point| point.p99_ns.is_some()) {
                true => format!("; p99 {} µs", list(Metric::P99Ns, |point| point.p99_ns)),
                false => String::new(),
            };
            let fans = fans.join(", ");
            told.push(format!(
                "{fans} {who}s {way} {node}: together {goodput} Gb/s{p99}"
            ));
            told.extend(self.fall(&points, who));
        }
        let together = last
            .gbit_per_s
            .map(|gbit_per_s| format!(": {} together", figure(Metric::GbitPerS, gbit_per_s)));
        let p99 = last
            .p99_ns
            .map(|ns| format!(", {}", figure(Metric::P99Ns, ns)));
        let jain = last.jain.map(|jain| format!(", Jain's index {jain:.3}"));
        let worst = last.worst().filter(|_| last.fan > 1).map(|worst| {
            let name = &worst.node;
            let share = worst.of_even;
            let gbit_per_s = figure(Metric::GbitPerS, worst.gbit_per_s);
            let look = match share < LITTLE {
                true => format!("; look at {name}, and at its path {way} {node}"),
                false => String::new(),
            };
            format!("; {name} has least, {gbit_per_s}: {share:.2} of an even share{look}")
        });
        let parts = [together, p99, jain, worst];
        let parts: String = parts.into_iter().flatten().collect();
        let count = last.fan;
        told.push(format!(
            "{count} {} {way} {node}{parts}",
            plural(count, who)
        ));
        told
    }

    /// Whether more nodes move less together.
    fn fall(&self, points: &[&FanPoint], who: &str) -> Option<String> {
        let goodput = |point: &FanPoint| point.gbit_per_s.unwrap_or(0.0);
        let best = points
            .iter()
            .max_by(|one, two| goodput(one).total_cmp(&goodput(two)))?;
        let after = points
            .iter()
            .filter(|point| point.fan > best.fan && point.gbit_per_s.is_some());
        let worst = after.min_by(|one, two| goodput(one).total_cmp(&goodput(two)))?;
        let fall = 1.0 - goodput(worst) / goodput(best);
        (fall > FALL).then(|| {
            format!(
                "goodput falls by {} from {} {} to {}",
                percent(fall),
                best.fan,
                plural(best.fan, who),
                worst.fan
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::mesh::Mesh;
    use crate::results::sample::{has, starts};

    #[test]
    fn an_incast_tells_goodput_fairness_and_who_has_least() {
        let mesh = Mesh::quiet(9);
        let mut fans = Fan::all(&mesh.incast(&[1, 2, 8]));
        assert_eq!(fans.len(), 1);
        let fan = &mut fans[0];
        let told = fan.sentences();
        starts(&told[0], "1, 2, 8 senders to node1: together 9.4");
        assert!(told[0].contains("; p99 "), "{told:?}");
        starts(&told[1], "8 senders to node1: 9.4");
        has(&told[1], ["Jain's index 1.000"]);
        assert_eq!(told.len(), 2, "{told:?}");
        fan.points[2].gbit_per_s = Some(6.0);
        let text = fan.sentences()[1].clone();
        starts(&text, "goodput falls by 36 % from ");
        assert!(text.ends_with(" to 8"), "{text}");
    }
}
