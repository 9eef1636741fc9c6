//! Single points with words.

use super::axis::AxisFrame;
use crate::show::plot::draw::palette::Look;
use crate::show::plot::draw::{Canvas, Labels, Style};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    pub name: String,
    /// Where it is; what lies above or below the chart is at its edge.
    pub at: (f64, f64),
    pub look: Look,
    /// Whether it is a ring around something: round for better, square for worse.
    pub ring: Option<bool>,
    pub hint: String,
    /// Words beside it; none where empty.
    pub label: String,
}

impl Dot {
    fn place(&self, frame: &AxisFrame) -> Option<(f64, f64)> {
        let (x, y) = frame.place(self.at.0, self.at.1)?;
        Some((x, y.clamp(frame.plot.y, frame.plot.bottom())))
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let Some(place) = self.place(frame) else {
            return;
        };
        canvas.begin_series(&self.name);
        match self.ring {
            Some(better) => canvas.ring(place, self.look.colour, better, &self.hint),
            None => canvas.marker(place, self.look, Some(&self.hint)),
        }
        canvas.end_group();
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        if let Some(place) = self.place(frame) {
            labels.keep_free_of_marker(place);
            let plain = Style::default();
            let style = match self.ring {
                Some(_) => Style { bold: true, colour: self.look.colour, ..plain },
                None => plain,
            };
            if !self.label.is_empty() {
                labels.beside(canvas, place, &self.label, style);
            }
        }
    }
}
