//! The figures, one kind a file. They must not know where they are shown or written.

pub mod comparison;
pub mod grid;
pub mod heat_map;
mod naming;
pub mod qp_shares;
pub mod ratios;
pub mod shares;
