//! What the runs of a pattern say of nodes and of the paths between them: matrices, curves over fan-in, outliers,
//! findings. All of it is made from a result file; nothing is stored.

mod causes;
mod fan;
mod figures;
mod findings;
mod losses;
mod matrix;
mod outliers;

pub use causes::Place;
pub use fan::{Fan, FanPoint, Share};
pub use figures::Figures;
pub use findings::{Mesh, NodesFinding, Part, Rest, Slow, Suspect, Why};
pub use losses::Lossy;
pub use matrix::{Cell, Matrix, groups, title};
pub use outliers::{Outlier, floor};
