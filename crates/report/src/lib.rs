//! Everything computed from results (`crates/results`). It builds without libibverbs.
//!
//! Arrows go one way, down this list: what is shown asks what is judged, and both ask what is observed.
//!
//! | room | what is in it |
//! |---|---|
//! | [`show`] | terminal, CSV, JSON, JUnit, page, figures: they decide nothing |
//! | [`judge`] | comparisons, thresholds, nodes beside each other, findings |
//! | [`observe`] | which figures count, what a metric is, how a figure is written |

pub mod judge;
pub mod observe;
pub mod show;
