//! What the runs of a pattern say of nodes and of the paths between them: matrices, curves over fan-in, outliers, sentences. All of it is
//! made from a result file; nothing is stored. It must not know pages or how anything is run.

mod causes;
mod fan;
mod fan_sentences;
mod figures;
mod matrix;
mod outliers;
mod sentences;
pub(crate) mod words;

pub use causes::Place;
pub use fan::{Direction, Fan, FanPoint, Share};
pub use figures::{Figures, OF_FLOWS};
pub use matrix::{Cell, Matrix};
pub use outliers::Outlier;
