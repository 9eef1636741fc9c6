//! Drawing of figures as SVG: text that is measured before it is set, scales and their ticks, legends, and the sheet that carries them. It must not know results, cases or metrics.

pub(crate) mod canvas;
#[cfg(test)]
pub(crate) mod check;
pub mod colour;
pub(crate) mod hatch;
pub(crate) mod labels;
pub(crate) mod legend;
pub mod number;
pub mod palette;
pub(crate) mod scale;
pub(crate) mod sheet;
pub mod text;
pub(crate) mod ticks;

pub use canvas::{Anchor, Canvas, Paint, Rect, Style};
pub use labels::Labels;
pub use legend::{Key, KeyMark};
pub use scale::{Kind, Scale};
pub use sheet::{Sheet, Width, as_file};
pub use ticks::{Tick, Unit};
