//! From a figure to its place on an axis.

/// How figures lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; ticks are powers of 2.
    Log2,
    /// Equal ratios are equally far apart; ticks are powers of 10.
    Log10,
}

/// The part of an axis that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub(crate) kind: Kind,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Scale {
    pub fn linear(min: f64, max: f64) -> Scale {
        let (mut min, mut max) = ordered(min, max, (0.0, 1.0));
        // Figures that differ in their last bits only would lie on no tick.
        let spread = (min.abs().max(max.abs()) * 1e-6).max(f64::MIN_POSITIVE * 1e6);
        if max - min < spread {
            let pad = if max == 0.0 { 0.5 } else { max.abs() * 0.1 };
            (min, max) = (min - pad, max + pad);
        }
        Scale::of(Kind::Linear, min, max)
    }

    /// From 0 to a round figure that is at least `max`.
    pub fn from_zero(max: f64) -> Scale {
        let is_told = max.is_finite() && max > 0.0;
        let max = if is_told { max } else { 1.0 };
        let step = round_step(max / 8.0);
        Scale::of(Kind::Linear, 0.0, ((max * 1.02) / step).ceil() * step)
    }

    /// From `min` to `max`, both above 0, in powers of 2; an octave around them where they are equal.
    pub fn log2(min: f64, max: f64) -> Scale {
        Scale::log(Kind::Log2, min, max, std::f64::consts::SQRT_2)
    }

    /// From `min` to `max`, both above 0, in powers of 10.
    pub fn log10(min: f64, max: f64) -> Scale {
        Scale::log(Kind::Log10, min, max, 3.0)
    }

    fn log(kind: Kind, min: f64, max: f64, pad: f64) -> Scale {
        let (mut min, mut max) = ordered(min, max, (1.0, 10.0));
        if min <= 0.0 {
            min = if max > 0.0 { max / 10.0 } else { 1.0 };
        }
        max = max.max(min);
        if max / min < 1.01 {
            Scale::of(kind, min / pad, max * pad)
        } else {
            Scale::of(kind, min, max)
        }
    }

    fn of(kind: Kind, min: f64, max: f64) -> Scale {
        Scale { kind, min, max }
    }

    /// With a margin of that part of its length at both ends.
    pub fn widened(self, part: f64) -> Scale {
        let Scale { kind, min, max } = self;
        if kind == Kind::Linear {
            let margin = (max - min) * part;
            return Scale::of(kind, min - margin, max + margin);
        }
        let factor = (max / min).powf(part);
        Scale::of(kind, min / factor, max * factor)
    }

    /// Where `value` lies: 0 is the lower end, 1 the upper one, others are outside; `None` for what has no
    /// place, such as 0 on a logarithmic axis.
    pub fn fraction(&self, value: f64) -> Option<f64> {
        let [at, min, max] = [value, self.min, self.max].map(|value| match self.kind {
            Kind::Linear => value,
            // Of 0 and below it is not finite.
            Kind::Log2 | Kind::Log10 => value.ln(),
        });
        let fraction = (at - min) / (max - min);
        fraction.is_finite().then_some(fraction)
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `step`.
pub(super) fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let rounded = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    rounded.into_iter().find(|rounded| *rounded >= step * (1.0 - 1e-9)).unwrap_or(step)
}

/// Both ends, or twice the one that is a number.
fn ordered(min: f64, max: f64, default: (f64, f64)) -> (f64, f64) {
    // Beyond these, differences and ratios of doubles are not finite.
    const LARGEST: f64 = 1e150;
    let ends = [min, max]
        .into_iter()
        .filter(|end| end.is_finite())
        .map(|end| end.clamp(-LARGEST, LARGEST));
    (ends.clone().reduce(f64::min)).zip(ends.reduce(f64::max)).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn octaves_are_equally_long() {
        let scale = Scale::log2(64.0, 1024.0);
        assert!((scale.fraction(128.0).unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(scale.fraction(0.0), None);
        assert_eq!(scale.fraction(f64::NAN), None);
    }

    #[test]
    fn from_zero_ends_on_a_round_figure() {
        assert_eq!(Scale::from_zero(93.4).max, 100.0);
        assert_eq!(Scale::from_zero(103.0).max, 120.0);
        assert!((Scale::from_zero(0.0).max - 1.2).abs() < 1e-9);
        assert!((Scale::from_zero(f64::NAN).max - 1.2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn every_scale_has_a_length(a in proptest::num::f64::ANY, b in proptest::num::f64::ANY) {
            for scale in [Scale::linear(a, b), Scale::log2(a, b), Scale::log10(a, b), Scale::from_zero(a.min(1e300))] {
                prop_assert!(scale.min < scale.max, "{scale:?}");
                for (end, place) in [(scale.min, 0.0), (scale.max, 1.0)] {
                    prop_assert!(scale.fraction(end).is_some_and(|at| (at - place).abs() < 1e-6), "{scale:?}");
                }
            }
        }
    }
}
