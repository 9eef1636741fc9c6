//! The versioned result model and its writers. It knows no verbs, no sockets and no threads.

pub mod model;

pub use model::ResultFile;
