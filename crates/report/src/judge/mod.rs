//! What results say: queries over observations whose answers are values.

mod caveats;
pub mod check;
pub mod compare;
mod convergence;
pub(crate) mod evenness;
pub mod finding;
pub mod findings;
pub mod mesh;
mod problems;
pub mod recipes;
pub mod searches;
pub mod stages;
pub mod threshold;
