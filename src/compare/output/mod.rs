//! The comparison as text for people and as documents for other programs, one file a format. They must not
//! judge: every word and figure is the comparison's.

pub mod action;
pub mod bmf;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod otava;
pub mod table;
mod words;

#[cfg(test)]
mod sample;
