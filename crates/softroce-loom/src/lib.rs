//! Models of how threads of the embedded device hand over to each other: loom runs each in all orders of its threads' steps,
//! and with all values that their loads may have in C++11's memory model, which allows more than any processor does. A thread
//! that nobody wakes is a deadlock, which fails the model.
//!
//! The files are the device's own. They have atomics and locks from `crate::sync`, which are loom's here.
#![cfg(test)]
#![allow(dead_code)] // the models use a part of the device's files

mod models;
mod net;
mod sync;

#[path = "../../softroce/src/transport"]
mod transport {
    pub(crate) mod completion_queue;
    pub(crate) mod peer;
    pub(crate) mod timing;
}

#[path = "../../softroce/src/verbs"]
mod verbs {
    pub(crate) mod latch;
}
