//! Drawing of figures as SVG: text that is measured before it is set, scales and their ticks, legends, line
//! charts, and the sheet that carries them. It must not know results, cases or metrics.

mod axis;
mod canvas;
#[cfg(test)]
mod chart_tests;
#[cfg(test)]
pub(crate) mod check;
pub mod colour;
mod labels;
mod legend;
mod line_chart;
pub mod number;
pub mod palette;
mod scale;
mod sheet;
pub mod text;
mod ticks;

pub use axis::{Axis, AxisFrame};
pub use canvas::{Anchor, Canvas, Paint, Rect, Style};
pub use labels::Labels;
pub use legend::{Key, KeyMark};
pub use line_chart::{LineChart, Point, Rule, Series};
pub use scale::{Kind, Scale};
pub use sheet::{Head, Sheet, Width, as_file};
pub use ticks::{Tick, Unit};
