//! How far a figure is from the median of its kind, as a colour, and how it is written.

use crate::observe::Metric;
use crate::show::plot::draw::number;
use crate::show::plot::draw::palette::DIVERGING;
use crate::show::plot::figures::shades::Shade;

/// Figures over the median at which a colour ends and the next begins, in percent. 100 is the median.
const BANDWIDTH: [u32; 8] = [50, 75, 90, 95, 98, 102, 105, 110];
/// Latencies scatter more, and there is no end to how long they can be.
const LATENCY: [u32; 8] = [67, 80, 90, 110, 125, 150, 200, 400];
/// Colours on which text has the ground's colour instead of the ink's.
const DARK_STEPS: usize = 3;

pub(super) fn shades(quantity: Metric) -> Vec<Shade> {
    let is_rate = quantity.higher_is_better();
    let ends = if is_rate { BANDWIDTH } else { LATENCY };
    (0..=ends.len())
        .map(|at| {
            // The first colour is the worst.
            let step = if is_rate { at } else { ends.len() - at };
            let (from, to) = (at.checked_sub(1).map(|at| ends[at]), ends.get(at));
            let label = match (from, to) {
                (Some(from), Some(to)) => format!("{from} to {to} %"),
                (Some(from), None) => format!("above {from} %"),
                (None, to) => format!("below {} %", to.unwrap_or(&0)),
            };
            let up_to = to.map_or(f64::INFINITY, |end| f64::from(*end) / 100.0);
            Shade::new(up_to, DIVERGING[step], step < DARK_STEPS, label)
        })
        .collect()
}

/// How the figures of a quantity are written: all in one unit, and as shares of their median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Norm {
    pub(super) unit: &'static str,
    /// What a figure is divided by to be in it.
    pub(super) divisor: f64,
    pub(super) median: f64,
}

impl Norm {
    /// `None` without a median to compare with.
    pub(super) fn around(median: Option<f64>, quantity: Metric) -> Option<Norm> {
        let median = median.filter(|median| median.is_finite() && *median > 0.0)?;
        let (unit, divisor) = match quantity.unit() {
            "ns" => {
                let unit = number::time_unit(median);
                (unit.name, unit.ns)
            }
            unit => (unit, 1.0),
        };
        Some(Norm { unit, divisor, median })
    }

    pub(super) fn share(&self, value: f64) -> f64 {
        value / self.median
    }

    pub(super) fn plain(&self, value: f64) -> String {
        number::short(value / self.divisor)
    }

    pub(super) fn with_unit(&self, value: f64) -> String {
        format!("{}\u{a0}{}", self.plain(value), self.unit)
    }

    pub(super) fn with_share(&self, value: f64) -> String {
        let (value, percent) = (self.with_unit(value), self.share(value) * 100.0);
        format!("{value}, {percent:.1}\u{a0}% of the median")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::figures::shades::tests::can_be_read;

    #[test]
    fn worse_is_a_lower_step_whichever_way_is_worse() {
        let steps = |quantity, values: [f64; 7]| {
            let norm = Norm::around(Some(10.0), quantity).unwrap();
            let shades = shades(quantity);
            can_be_read(&shades);
            values
                .map(|value| Shade::of(&shades, norm.share(value)).colour)
                .map(|colour| DIVERGING.iter().position(|it| *it == colour).unwrap())
        };
        let rates = [0.0, 6.0, 9.7, 10.0, 10.1, 10.3, 99.0];
        assert_eq!(steps(Metric::GbitPerS, rates), [0, 1, 4, 5, 5, 6, 8]);
        let times = [99.0, 21.0, 11.5, 10.0, 9.5, 8.5, 1.0];
        assert_eq!(steps(Metric::P99Ns, times), [0, 1, 4, 5, 5, 6, 8]);
        for missing in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(Norm::around(missing, Metric::P99Ns), None);
        }
    }
}
