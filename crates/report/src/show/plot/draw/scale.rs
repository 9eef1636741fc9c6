//! From a figure to its place on an axis, and where the axis has ticks and what is written at them.

use crate::show::plot::draw::text;

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
        Scale::new(Kind::Linear, min, max)
    }

    /// From 0 to a round figure that is at least `max`.
    pub fn from_zero(max: f64) -> Scale {
        let is_told = max.is_finite() && max > 0.0;
        let max = if is_told { max } else { 1.0 };
        let step = round_step(max / 8.0);
        Scale::new(Kind::Linear, 0.0, ((max * 1.02) / step).ceil() * step)
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
            Scale::new(kind, min / pad, max * pad)
        } else {
            Scale::new(kind, min, max)
        }
    }

    fn new(kind: Kind, min: f64, max: f64) -> Scale {
        Scale { kind, min, max }
    }

    /// With a margin of that part of its length at both ends.
    pub fn widened(self, part: f64) -> Scale {
        let Scale { kind, min, max } = self;
        if kind == Kind::Linear {
            let margin = (max - min) * part;
            return Scale::new(kind, min - margin, max + margin);
        }
        let factor = (max / min).powf(part);
        Scale::new(kind, min / factor, max * factor)
    }

    /// The unit of its figures, which are in `usual`, where they are short, and its size.
    pub(crate) fn rate_unit(&self, usual: &'static str) -> (&'static str, f64) {
        text::rate_unit(usual, self.largest())
    }

    fn largest(&self) -> f64 {
        self.min.abs().max(self.max.abs())
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
fn round_step(step: f64) -> f64 {
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

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

/// The kind of an axis' figures, which decides how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain figures; the axis' title has their unit.
    Plain,
    /// Figures in this unit, `Gb/s` or `Mmsg/s`, which the axis' title has; small ones in a smaller unit of its kind.
    Rate(&'static str),
    /// Bytes, written with B, KiB, MiB and GiB.
    Bytes,
    /// Nanoseconds, written with ns, µs, ms and s.
    Nanoseconds,
    /// 1 / (1 - q), written as the percentile q.
    Tail,
}

/// About as many ticks as have `room`, seldom more.
pub(crate) fn ticks(scale: &Scale, unit: Unit, room: usize) -> Vec<Tick> {
    let wanted = room.max(1);
    match (unit, scale.kind) {
        (Unit::Tail, _) => tail(scale, wanted),
        (_, Kind::Linear) => linear(scale, unit, wanted),
        (_, Kind::Log2) => or_linear(powers(scale, unit, wanted, 2.0), scale, unit, wanted),
        (_, Kind::Log10) => or_linear(decades(scale, unit, wanted), scale, unit, wanted),
    }
}

/// A logarithmic axis so short that it has less than two powers has round figures as ticks.
fn or_linear(ticks: Vec<Tick>, scale: &Scale, unit: Unit, wanted: usize) -> Vec<Tick> {
    if ticks.len() >= 2 || wanted < 2 || scale.max / scale.min > 100.0 {
        ticks
    } else {
        linear(scale, unit, wanted)
    }
}

fn within(scale: &Scale, value: f64) -> bool {
    scale.fraction(value).is_some_and(|at| (-1e-9..=1.0 + 1e-9).contains(&at))
}

/// What stands behind figures of so many, and what they are divided by.
fn written_in(unit: Unit, scale: &Scale, most: f64) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds => text::time_unit(most),
        // One for all, since the title has it.
        Unit::Rate(usual) => ("", scale.rate_unit(usual).1),
        Unit::Bytes => ("B", 1.0),
        Unit::Plain | Unit::Tail => ("", 1.0),
    }
}

fn named(figure: &str, name: &str) -> String {
    let blank = if name.is_empty() { "" } else { "\u{a0}" };
    format!("{figure}{blank}{name}")
}

fn linear(scale: &Scale, unit: Unit, wanted: usize) -> Vec<Tick> {
    let largest = scale.largest();
    let (name, size) = written_in(unit, scale, largest);
    // Figures that would be mostly zeros have a power of ten.
    let is_short = (scale.max - scale.min) / size >= 1e-4 * wanted as f64 && largest / size < 1e12;
    let power = if is_short { 0 } else { (largest / size).log10().floor() as i32 };
    let factor = size * 10f64.powi(power);
    let (min, max) = (scale.min / factor, scale.max / factor);
    let step = round_step((max - min) / wanted as f64);
    let whole = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    // 2.5 needs one digit more than its power of ten.
    let has_half = whole < 12 && (step * 10f64.powi(whole as i32)).fract().abs() > 1e-6;
    let digits = whole + usize::from(has_half);
    let first = (min / step - 1e-9).ceil();
    let count = ((max / step + 1e-9).floor() - first).clamp(0.0, 60.0) as usize;
    (0..=count)
        .map(|index| (first + index as f64) * step)
        .map(|value| {
            let figure = match (value == 0.0, power) {
                (true, _) => "0".to_owned(),
                (_, 0) => text::fixed(value, digits),
                _ => format!("{}×10^{power}", text::fixed(value, digits)).replace('-', "−"),
            };
            Tick { value: value * factor, label: named(&figure, name) }
        })
        .filter(|tick| within(scale, tick.value))
        .collect()
}

fn tick(value: f64, unit: Unit, scale: &Scale) -> Tick {
    let (name, factor) = written_in(unit, scale, value);
    let label = match unit {
        Unit::Bytes if (1.0..=1e18).contains(&value) => text::bytes(value as u64),
        Unit::Bytes => plain(value),
        _ => named(&plain(value / factor), name),
    };
    Tick { value, label }
}

fn plain(value: f64) -> String {
    if (1.0..1e6).contains(&value) && value.fract() == 0.0 {
        return text::fixed(value, 0);
    }
    if (1e-4..1e6).contains(&value) {
        let text = text::short(value);
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
    }
    let exponent = value.log10().floor();
    let mantissa = value / 10f64.powf(exponent);
    let power = format!("10^{exponent}").replace('-', "−");
    if (mantissa - 1.0).abs() < 1e-6 { power } else { format!("{mantissa:.0}×{power}") }
}

fn powers(scale: &Scale, unit: Unit, wanted: usize, base: f64) -> Vec<Tick> {
    let first = (scale.min.ln() / base.ln() - 1e-9).ceil();
    let last = (scale.max.ln() / base.ln() + 1e-9).floor();
    let stride = (((last - first + 1.0) / wanted as f64).ceil()).max(1.0);
    // Multiples of the stride, so that 1 KiB and 1 MiB keep their ticks while others go.
    let first_stride = (first / stride).ceil();
    (0..400)
        .map(|index| (first_stride + f64::from(index)) * stride)
        .take_while(|exponent| *exponent <= last)
        .map(|it| tick(base.powf(it), unit, scale))
        .collect()
}

fn decades(scale: &Scale, unit: Unit, wanted: usize) -> Vec<Tick> {
    let span = (scale.max / scale.min).log10();
    let between: &[f64] = match wanted as f64 / span.max(1e-9) {
        room if room >= 3.0 => &[1.0, 2.0, 5.0],
        room if room >= 2.0 => &[1.0, 3.0],
        _ => return powers(scale, unit, wanted, 10.0),
    };
    let first = scale.min.log10().floor() as i32;
    let decades = first..=first + 1 + span.ceil() as i32;
    decades
        .flat_map(|decade| between.iter().map(move |it| it * 10f64.powi(decade)))
        .filter(|&value| within(scale, value))
        .map(|value| tick(value, unit, scale))
        .collect()
}

/// The percentiles that people name, always; further ones where there is room.
fn tail(scale: &Scale, wanted: usize) -> Vec<Tick> {
    let ends = (scale.max.log10() + 1e-9).floor().clamp(0.0, 9.0) as i32;
    let named = if wanted > ends as usize { ends } else { 4 };
    let nines = (1..=named).map(|nines| (10f64.powi(nines), nines));
    std::iter::once((2.0, 0))
        .chain(nines)
        .map(|(value, nines)| Tick {
            value,
            label: format!("{:.*}", (nines - 2).max(0) as usize, 100.0 - 100.0 / value),
        })
        .filter(|tick| within(scale, tick.value))
        .collect()
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

    #[test]
    fn ticks_are_round_and_as_many_as_there_is_room_for() {
        let (linear, log10) = (Scale::linear, Scale::log10);
        let sizes = Scale::log2(64.0, 1_048_576.0);
        let tail = log10(1.0, 1e5);
        let (round, ns) = (Scale::from_zero(93.4), Unit::Nanoseconds);
        let nines = "50; 90; 99; 99.9; 99.99";
        let percentiles = "50; 90; 99; 99.9; 99.99; 99.999";
        for (scale, unit, wanted, expected) in [
            (round, Unit::Plain, 5, "0; 20; 40; 60; 80; 100"),
            (linear(0.0, 1.0), Unit::Plain, 2, "0; 0.5; 1.0"),
            (linear(0.0, 10.0), Unit::Plain, 4, "0; 2.5; 5.0; 7.5; 10.0"),
            (linear(0.0, 0.0012), Unit::Rate("Mmsg/s"), 4, "0; 0.5; 1.0"),
            (linear(0.0, 3e-5), Unit::Plain, 3, "0; 1×10^−5; 2×10^−5; 3×10^−5"),
            (linear(0.0, 3000.0), ns, 3, "0 µs; 1 µs; 2 µs; 3 µs"),
            // Powers of two.
            (sizes, Unit::Bytes, 5, "64 B; 512 B; 4 KiB; 32 KiB; 256 KiB"),
            (sizes, Unit::Bytes, 2, "256 B; 64 KiB"),
            // Decades are filled where there is room.
            (log10(1e3, 1e6), ns, 4, "1 µs; 10 µs; 100 µs; 1 ms"),
            (log10(10.0, 100.0), Unit::Plain, 4, "10; 20; 50; 100"),
            (log10(3.1, 3.9), Unit::Plain, 4, "3.2; 3.4; 3.6; 3.8"),
            // The percentiles that people name are always there.
            (tail, Unit::Tail, 8, percentiles),
            (tail, Unit::Tail, 3, nines),
        ] {
            let labels: Vec<String> =
                ticks(&scale, unit, wanted).into_iter().map(|tick| tick.label).collect();
            assert_eq!(labels.join("; ").replace('\u{a0}', " "), expected);
        }
        assert_eq!(ticks(&sizes, Unit::Bytes, 20).len(), 15);
    }

    proptest! {
        #[test]
        fn ticks_lie_on_the_axis_and_are_few(
            a in -1e9..1e9f64, b in -1e9..1e9f64, exponent in -30..30i32, wanted in 1usize..20,
        ) {
            let factor = 10f64.powi(exponent);
            let (a, b) = (a * factor, b * factor);
            for (scale, unit) in [
                (Scale::linear(a, b), Unit::Plain),
                (Scale::linear(a, b), Unit::Nanoseconds),
                (Scale::from_zero(a), Unit::Rate("Mmsg/s")),
                (Scale::log10(a, b), Unit::Rate("Gb/s")),
                (Scale::log2(a, b), Unit::Bytes),
                (Scale::log10(a, b), Unit::Nanoseconds),
                (Scale::log10(a, b), Unit::Tail),
            ] {
                let ticks = ticks(&scale, unit, wanted);
                prop_assert!(ticks.len() <= 4 * wanted + 4, "{scale:?} {unit:?} {wanted}: {ticks:?}");
                for tick in &ticks {
                    prop_assert!(within(&scale, tick.value), "{tick:?} {scale:?}");
                }
                for pair in ticks.windows(2) {
                    prop_assert!(pair[0].value < pair[1].value);
                    prop_assert!(pair[0].label != pair[1].label, "{scale:?} {unit:?}: {ticks:?}");
                }
                for tick in ticks {
                    let has_digits = tick.label.contains(|digit| ('1'..='9').contains(&digit));
                    prop_assert!(has_digits == (tick.value != 0.0), "{tick:?} {scale:?}");
                }
            }
        }
    }
}
