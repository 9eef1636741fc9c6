//! The limits of one system call.

/// The most packets of a GSO batch: Linux' limit for one datagram (UDP_MAX_SEGMENTS of older versions).
pub const MAX_GSO_BATCH_PACKETS: usize = 64;

/// The most bytes of a GSO batch: an IPv4 datagram without its headers.
pub const MAX_GSO_BATCH_BYTES: usize = 65_507;
