//! What the sending half needs to know of packets, whether they lie in a program's memory or are copies.

use std::io;

use super::fabric::Attachment;
use super::flow::Flow;

/// Packets of one flow for one system call.
pub trait Outgoing {
    fn flow(&self) -> Option<&Flow>;
    fn packets(&self) -> usize;
    /// Length of every packet but the last, which may be shorter.
    fn segment_bytes(&self) -> usize;
    /// Number of bytes, from the base transport headers to the CRCs.
    fn bytes(&self) -> usize;
    /// A copy of the bytes.
    fn copied(&self) -> Vec<u8>;
    /// Sends them in one system call, as a whole or not at all; never blocks.
    fn send_on(&self, by: &Attachment, flow: &Flow) -> io::Result<()>;
}
