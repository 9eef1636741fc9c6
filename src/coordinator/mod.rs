//! Steers a sweep, case by case and run by run: each step is a message to all nodes and an answer from each. It has no
//! QPs.

mod admission;
pub mod against;
mod arrived;
mod assemble;
pub mod at_once;
mod clocks;
mod grace;
pub mod lesson;
mod links;
mod maxima;
mod members;
mod meter;
mod nodes;
pub mod observer;
pub mod options;
mod priorities;
mod quick;
mod rails;
pub mod ranks;
mod relay;
mod run;
mod search;
pub mod session;
pub mod sweep;
pub mod sweeper;
pub mod tool;
mod unconnected;
