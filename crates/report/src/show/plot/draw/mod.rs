//! Drawing of figures as SVG: text that is measured before it is set, scales and their ticks, legends, and the
//! sheet that carries them.

pub(crate) mod canvas;
#[cfg(test)]
pub(crate) mod check;
pub(crate) mod colour;
pub(crate) mod hatch;
pub(crate) mod labels;
pub(crate) mod legend;
pub(crate) mod number;
pub(crate) mod palette;
pub(crate) mod scale;
pub(crate) mod sheet;
pub(crate) mod text;
pub(crate) mod ticks;

pub(crate) use canvas::{Anchor, Canvas, Paint, Rect, Style};
pub(crate) use labels::Labels;
pub(crate) use legend::{Key, KeyMark};
pub(crate) use scale::Scale;
pub use sheet::Width;
pub(crate) use sheet::{Sheet, as_file};
pub(crate) use ticks::{Tick, Unit};
