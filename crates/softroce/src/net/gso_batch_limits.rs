//! The limits of one system call.

/// The most packets of a GSO batch: Linux' limit for one datagram (UDP_MAX_SEGMENTS, since 6.9).
pub const MAX_GSO_BATCH_PACKETS: usize = 128;

/// The limit of older kernels.
pub const OLDER_GSO_BATCH_PACKETS: usize = 64;

/// The most bytes of a GSO batch: an IPv4 datagram without its headers.
pub const MAX_GSO_BATCH_BYTES: usize = 65_507;
