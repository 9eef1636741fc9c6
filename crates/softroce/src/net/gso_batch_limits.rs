//! How much one system call sends.

/// Packets of a GSO batch at most: what Linux segments of one datagram (UDP_MAX_SEGMENTS of its older versions).
pub const MAX_GSO_BATCH_PACKETS: usize = 64;

/// Bytes of a GSO batch at most: those of an IPv4 datagram without its headers.
pub const MAX_GSO_BATCH_BYTES: usize = 65_507;
