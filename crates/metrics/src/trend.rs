//! A straight line through points, and how sure its slope is. Pure arithmetic.

/// The line of least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) mean: f64,
    /// Growth of the value for 1 of the place.
    pub(super) slope: f64,
    /// Standard error of the slope, from the values' scatter about the line.
    pub(super) slope_error: f64,
}

impl Line {
    /// Through at least three points, place and value, not all at one place; `None` of less.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Line> {
        let free = points.len().checked_sub(2).filter(|&free| free > 0)?;
        let place = mean(points.iter().map(|point| point.0));
        let value = mean(points.iter().map(|point| point.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - place).powi(2)).sum();
        let common: f64 = points.iter().map(|(x, y)| (x - place) * (y - value)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = common / spread;
        let scatter =
            points.iter().map(|(x, y)| (y - value - slope * (x - place)).powi(2)).sum::<f64>()
                / free as f64;
        Some(Line { mean: value, slope, slope_error: (scatter / spread).sqrt() })
    }
}

/// Arithmetic mean; NaN of nothing.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_slope_and_error_of_the_textbook() {
        // y = 1 + 2x with errors 1, -2 and 1: squares 6, one degree of freedom, places spread 2.
        let line = Line::through(&[(0.0, 2.0), (1.0, 1.0), (2.0, 6.0)]).unwrap();
        assert!((line.mean - 3.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12);
        assert!((line.slope_error - 3f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn no_line_goes_through_less_than_three_places() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
