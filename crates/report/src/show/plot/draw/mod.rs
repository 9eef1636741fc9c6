//! Drawing of figures as SVG: text that is measured before it is set, scales and their ticks, legends, and the
//! sheet that carries them.

pub(crate) mod canvas;
#[cfg(test)]
pub(crate) mod check;
pub(crate) mod number;
pub(crate) mod palette;
pub(crate) mod scale;
pub(crate) mod sheet;
pub(crate) mod text;

pub(crate) use canvas::{Anchor, Canvas, Labels, Paint, Rect, Style};
pub(crate) use scale::{Scale, Tick, Unit};
pub use sheet::Width;
pub(crate) use sheet::{Key, KeyMark, Sheet, as_file};
