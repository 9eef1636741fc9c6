//! Congestion: the receiver tells of marked packets, and the sender slows down (DCQCN). How much it slows down is in
//! `state/sending_rate`.

pub(crate) mod notification_point;
pub(crate) mod reaction_point;
