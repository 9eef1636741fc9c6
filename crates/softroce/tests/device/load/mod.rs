//! Transfers between ends without a model: many QPs, many senders, marks, and links that are slow.

mod corks;
mod crowd;
mod hot_memory;
mod marks;
mod read_order;
mod senders;
mod slow_link;
