//! The packets of requests: opcodes and headers.

use super::request::Operation;
use super::send_queue::Wqe;
use crate::wire::{AtomicEth, Opcode, Reth};

/// The most bytes of one READ request packet; longer READs are split. This end must limit the answers in flight,
/// since they overrun its own socket.
const READ_REQUEST_BYTES: u32 = 64 << 10;
/// The default partition.
pub(crate) const PKEY: u16 = 0xffff;

/// The most packets in the answer to one READ request packet.
pub(crate) fn read_part_packets(mtu_bytes: u32) -> u32 {
    (READ_REQUEST_BYTES / mtu_bytes).max(1)
}

pub(crate) fn opcode(wqe: &Wqe, first: bool, last: bool) -> Opcode {
    let write = matches!(wqe.operation, Operation::Write { .. });
    let immediate = wqe.immediate().is_some();
    match (write, first, last, immediate) {
        (false, true, true, false) => Opcode::SendOnly,
        (false, true, true, true) => Opcode::SendOnlyImmediate,
        (false, true, false, _) => Opcode::SendFirst,
        (false, false, false, _) => Opcode::SendMiddle,
        (false, false, true, false) => Opcode::SendLast,
        (false, false, true, true) => Opcode::SendLastImmediate,
        (true, true, true, false) => Opcode::WriteOnly,
        (true, true, true, true) => Opcode::WriteOnlyImmediate,
        (true, true, false, _) => Opcode::WriteFirst,
        (true, false, false, _) => Opcode::WriteMiddle,
        (true, false, true, false) => Opcode::WriteLast,
        (true, false, true, true) => Opcode::WriteLastImmediate,
    }
}

/// The RDMA header of a WRITE or READ from its byte `start`.
pub(crate) fn reth(wqe: &Wqe, start: u32, length_bytes: u32) -> Option<Reth> {
    match wqe.operation {
        Operation::Write { address, rkey } | Operation::Read { address, rkey } => {
            Some(Reth { address: address.wrapping_add(start.into()), rkey, length_bytes })
        }
        _ => None,
    }
}

pub(crate) fn atomic_header(wqe: &Wqe) -> (Opcode, Option<AtomicEth>) {
    match wqe.operation {
        Operation::FetchAdd { address, rkey, add } => {
            let header = AtomicEth { address, rkey, swap_or_add: add, compare: 0 };
            (Opcode::FetchAdd, Some(header))
        }
        Operation::CompareSwap { address, rkey, compare, swap } => {
            let header = AtomicEth { address, rkey, swap_or_add: swap, compare };
            (Opcode::CompareSwap, Some(header))
        }
        _ => (Opcode::FetchAdd, None),
    }
}
