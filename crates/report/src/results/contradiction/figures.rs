//! Single figures of a run that cannot be: those that are no numbers, that lack though what they follow from is there, or
//! that others deny. It must not know what they are of.

use crate::results::model::Latency;
use crate::results::percentile::can_tell;

/// By how much a figure may differ from what it follows from, as a part of it.
pub(super) const TOLERANCE: f64 = 0.02;

/// Times on two clocks, the CPU's and the wall's, may differ by this part, and by this many seconds.
const CLOCK_TOLERANCE: f64 = 0.1;
const CLOCK_TOLERANCE_SECONDS: f64 = 0.05;

/// What was found, as what the run "has" or "says".
pub(super) type Found = Result<(), String>;

pub(super) fn finite(what: &str, value: f64) -> Found {
    match value.is_finite() {
        true => Ok(()),
        false => Err(format!("has {what} of {value}, which is not a number")),
    }
}

pub(super) fn not_negative(what: &str, value: f64) -> Found {
    finite(what, value)?;
    match value >= 0.0 {
        true => Ok(()),
        false => Err(format!("has {what} of {value}, below 0")),
    }
}

/// Whether a time on one clock is longer than one on another.
pub(super) fn is_longer(seconds: f64, other_seconds: f64) -> bool {
    seconds > other_seconds * (1.0 + CLOCK_TOLERANCE) + CLOCK_TOLERANCE_SECONDS
}

pub(super) fn positive(what: &str, value: f64) -> Found {
    finite(what, value)?;
    match value > 0.0 {
        true => Ok(()),
        false => Err(format!("has {what} of {value}, which is not above 0")),
    }
}

/// A figure that follows from others in the file, which say `expected`; it may lack only where it `is_needed` not.
pub(super) fn follows(
    what: &str,
    told: Option<f64>,
    expected: Option<f64>,
    is_needed: bool,
    tolerance: f64,
) -> Found {
    let (told, expected) = match (told, expected) {
        (None, Some(expected)) if is_needed => {
            return Err(format!(
                "lacks {what}, which is {expected:.4} by its other figures"
            ));
        }
        (None, _) => return Ok(()),
        (Some(told), None) => return Err(format!("has {what} of {told} in a time of 0 s")),
        (Some(told), Some(expected)) => (told, expected),
    };
    not_negative(what, told)?;
    match (told - expected).abs() <= tolerance * expected.abs() {
        true => Ok(()),
        false => Err(format!(
            "has {what} of {told:.4}, and its other figures give {expected:.4}"
        )),
    }
}

pub(super) fn equals(what: &str, told: impl Into<u128>, parts: &str, sum: u128) -> Found {
    let told = told.into();
    match told == sum {
        true => Ok(()),
        false => Err(format!("has {told} {what}, and {parts} {sum}")),
    }
}

pub(super) fn latency(what: &str, told: Option<&Latency>) -> Found {
    let Some(told) = told else { return Ok(()) };
    let samples = [("samples", told.count), ("overflows", told.overflows)];
    if told.count == 0 || told.overflows > told.count {
        return Err(format!("has {what} with {samples:?}"));
    }
    for (name, quantile, ns) in [
        ("p50", 0.5, told.p50),
        ("p90", 0.9, told.p90),
        ("p99", 0.99, told.p99),
        ("p99.9", 0.999, told.p99_9),
        ("p99.99", 0.9999, told.p99_99),
    ] {
        if ns.is_none() && can_tell(told.count, quantile) {
            let count = told.count;
            return Err(format!("lacks {name} of {what} with {count} samples"));
        }
    }
    let figure = |name, ns: Option<u64>| Some((name, ns? as f64));
    let rising = [
        figure("min", Some(told.min)),
        figure("p50", told.p50),
        figure("p90", told.p90),
        figure("p99", told.p99),
        figure("p99.9", told.p99_9),
        figure("p99.99", told.p99_99),
        figure("max", Some(told.max)),
    ];
    let rising: Vec<_> = rising.into_iter().flatten().collect();
    distribution(what, "ns", &rising, told.mean, told.stddev)
}

/// A distribution's figures, from its least to its greatest, rise, and its mean lies between them.
pub(super) fn distribution(
    what: &str,
    unit: &str,
    rising: &[(&str, f64)],
    mean: f64,
    stddev: f64,
) -> Found {
    for (name, value) in rising {
        not_negative(&format!("{what} with a {name} ({unit})"), *value)?;
    }
    if let Some(pair) = rising.windows(2).find(|pair| pair[0].1 > pair[1].1) {
        let [(low, below), (high, above)] = [pair[0], pair[1]];
        return Err(format!(
            "has {what} with {low} {below} {unit} above {high} {above} {unit}"
        ));
    }
    not_negative(&format!("a deviation of {what} ({unit})"), stddev)?;
    not_negative(&format!("a mean {what} ({unit})"), mean)?;
    let ends = rising.first().zip(rising.last());
    // A histogram knows its samples to 1 %.
    let inside = |(least, most): (&(&str, f64), &(&str, f64))| {
        (least.1 * 0.99..=most.1 * 1.01).contains(&mean)
    };
    match ends.is_none_or(inside) {
        true => Ok(()),
        false => Err(format!(
            "has a mean {what} of {mean} {unit}, outside its samples"
        )),
    }
}
