//! Results of rocebench, and everything computed from them. It must not know verbs, sockets or how anything is run, and builds
//! without libibverbs.
//!
//! Arrows go one way, down this list: what is shown asks what is judged, both ask what is observed, and all of it comes from
//! the model of a result. All may use `text`, and `results` makes its files with `new_file`.
//!
//! | room | what is in it |
//! |---|---|
//! | [`show`] | terminal, CSV, JSON, JUnit, page, figures: they decide nothing |
//! | [`judge`] | comparisons, thresholds, nodes beside each other, findings |
//! | [`observe`] | which figures count, what a metric is, how a figure is written |
//! | [`results`] | the model, and its files |

pub mod judge;
pub mod new_file;
pub mod observe;
pub mod results;
pub mod show;
pub mod text;
