//! A GSO batch in memory of its own, of finished packets: those that leave a faulty link together, and those that a
//! full socket did not take. It must not know links or queues.

use std::io;

use super::fabric::Attachment;
use super::flow::Flow;
use super::gso_batch_limits::MAX_GSO_BATCH_BYTES;
use super::outgoing::Outgoing;
use crate::wire::{ICRC_BYTES, IdentificationShift};

/// Consecutive packets of one flow for one system call. All have one length; the last may be shorter.
pub struct CopiedBatch {
    flow: Option<Flow>,
    segment_bytes: usize,
    packets: usize,
    /// Whether the last packet was shorter, which ends the batch.
    closed: bool,
    bytes: Vec<u8>,
    /// For packets of this length, with the CRC.
    shift: Option<(usize, IdentificationShift)>,
}

impl CopiedBatch {
    /// An empty batch with room for the largest.
    pub fn new() -> CopiedBatch {
        CopiedBatch {
            flow: None,
            segment_bytes: 0,
            packets: 0,
            closed: false,
            bytes: Vec::with_capacity(MAX_GSO_BATCH_BYTES),
            shift: None,
        }
    }

    /// A copy of packets on their way.
    pub fn of(flow: &Flow, outgoing: &impl Outgoing) -> CopiedBatch {
        CopiedBatch {
            flow: Some(flow.clone()),
            segment_bytes: outgoing.segment_bytes(),
            packets: outgoing.packets(),
            closed: true,
            bytes: outgoing.copied(),
            shift: None,
        }
    }

    /// Adds a packet whose CRC is right at `place` of a GSO batch; `false` if it does not fit.
    pub fn push(&mut self, flow: &Flow, place: u16, packet: &[u8], most_packets: usize) -> bool {
        if self.packets == 0 {
            self.flow = Some(flow.clone());
            self.segment_bytes = packet.len();
        }
        let fits = !self.closed
            && self.packets < most_packets
            && packet.len() <= self.segment_bytes
            && self.bytes.len() + packet.len() <= MAX_GSO_BATCH_BYTES
            && self.flow.as_ref() == Some(flow);
        if !fits {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        self.closed = packet.len() < self.segment_bytes;
        let moved = place ^ self.packets as u16;
        self.packets += 1;
        if moved != 0 && flow.destination.is_ipv4() {
            let change = self.shift_for(packet.len()).change(moved);
            // What damaged the packet stays in it: only the move is added.
            if let Some(crc) = self.bytes.last_chunk_mut::<ICRC_BYTES>() {
                *crc = (u32::from_le_bytes(*crc) ^ change).to_le_bytes();
            }
        }
        true
    }

    fn shift_for(&mut self, packet_bytes: usize) -> IdentificationShift {
        match self.shift {
            Some((bytes, shift)) if bytes == packet_bytes => shift,
            _ => {
                let shift = IdentificationShift::over(packet_bytes.saturating_sub(ICRC_BYTES));
                self.shift = Some((packet_bytes, shift));
                shift
            }
        }
    }

    pub fn clear(&mut self) {
        self.packets = 0;
        self.closed = false;
        self.bytes.clear();
    }
}

impl Outgoing for CopiedBatch {
    fn flow(&self) -> Option<&Flow> {
        self.flow.as_ref()
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    fn copied(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn send_on(&self, by: &Attachment, flow: &Flow) -> io::Result<()> {
        let options = flow.send_options(self.packets, self.segment_bytes);
        by.send_bytes(&self.bytes, &options)
    }
}
