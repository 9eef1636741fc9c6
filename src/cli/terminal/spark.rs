//! Figures as a line of bars, one character each. It must not know what they are of.

use std::collections::VecDeque;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last figures of a series.
#[derive(Debug)]
pub(in crate::cli) struct Spark {
    most: usize,
    figures: VecDeque<f64>,
}

impl Spark {
    /// None so far, and at most so many.
    pub(in crate::cli) fn new(most: usize) -> Spark {
        Spark { most, figures: VecDeque::new() }
    }

    /// One more; the oldest goes where there are too many.
    pub(in crate::cli) fn push(&mut self, figure: f64) {
        if self.figures.len() == self.most {
            self.figures.pop_front();
        }
        self.figures.push_back(figure);
    }

    pub(in crate::cli) fn clear(&mut self) {
        self.figures.clear();
    }

    /// A bar for each, from 0 to the largest: what varies little is level.
    pub(in crate::cli) fn bars(&self) -> String {
        let largest = self.figures.iter().copied().fold(0.0, f64::max);
        self.figures
            .iter()
            .map(|figure| {
                let share = if largest > 0.0 { figure / largest } else { 0.0 };
                let height = (share * BARS.len() as f64).ceil() as usize;
                BARS[height.clamp(1, BARS.len()) - 1]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_shares_of_the_largest() {
        let mut spark = Spark::new(5);
        assert_eq!(spark.bars(), "");
        for figure in [100.0, 0.0, 1.0, 4.0, 7.5, 8.0] {
            spark.push(figure);
        }
        assert_eq!(spark.bars(), "▁▁▄██");
        spark.clear();
        spark.push(0.0);
        assert_eq!(spark.bars(), "▁");
    }
}
