//! The requests that extended posting collects between `wr_start` and `wr_complete`. It must not know C callers.

use std::cell::UnsafeCell;
use std::os::raw::c_int;

use rdma_sys::ibv_send_flags;

use super::object::Latch;
use crate::transport::{Datagram, Operation, Payload, SendRequest, Sge};

/// A request that is being built.
pub(super) struct Pending {
    pub(super) wr_id: u64,
    pub(super) flags: u32,
    pub(super) operation: Operation,
    pub(super) immediate: Option<u32>,
    pub(super) inline: bool,
    /// Index of its first element, and their number.
    pub(super) first_sge: usize,
    pub(super) sges: usize,
    pub(super) datagram: Option<Datagram>,
}

/// The requests since `wr_start`. Keeps its memory for the next batch.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Pending>,
    /// Elements of all requests. Those of inline data contain an offset in `bytes` until `wr_complete`.
    sges: Vec<Sge>,
    /// Inline data, copied because the program may change it after the call.
    bytes: Vec<u8>,
    /// The error of a call that cannot return it.
    pub(super) error: Option<c_int>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.sges.clear();
        self.bytes.clear();
        self.error = None;
    }

    /// Starts a request without data.
    pub(super) fn begin(
        &mut self,
        wr_id: u64,
        flags: u32,
        operation: Operation,
        immediate: Option<u32>,
    ) {
        let first_sge = self.sges.len();
        self.requests.push(Pending {
            wr_id,
            flags,
            operation,
            immediate,
            inline: false,
            first_sge,
            sges: 0,
            datagram: None,
        });
    }

    /// Changes the current request; without one the program called the setter too early.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut Pending)) {
        match self.requests.last_mut() {
            Some(request) => change(request),
            None => self.error = Some(libc::EINVAL),
        }
    }

    pub(super) fn set_elements(&mut self, elements: &[Sge]) {
        self.add_elements(elements, false);
    }

    fn add_elements(&mut self, elements: &[Sge], inline: bool) {
        let first_sge = self.sges.len();
        self.sges.extend_from_slice(elements);
        self.set(|request| {
            request.inline = inline;
            request.first_sge = first_sge;
            request.sges = elements.len();
        });
    }

    /// Copies the pieces into one element.
    pub(super) fn set_inline<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        let offset = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let Ok(length_bytes) = u32::try_from(self.bytes.len() - offset) else {
            self.error = Some(libc::EINVAL);
            return;
        };
        let element = Sge { address: offset as u64, length_bytes, lkey: 0 };
        self.add_elements(&[element], true);
    }

    /// Replaces offsets by addresses: the bytes do not move from now on.
    pub(super) fn settle(&mut self) {
        let start = self.bytes.as_ptr().addr() as u64;
        for request in self.requests.iter().filter(|request| request.inline) {
            for sge in &mut self.sges[request.first_sge..][..request.sges] {
                sge.address += start;
            }
        }
    }

    pub(super) fn request(&self, index: usize) -> Option<SendRequest<'_>> {
        let request = self.requests.get(index)?;
        let sges = &self.sges[request.first_sge..][..request.sges];
        Some(SendRequest {
            wr_id: request.wr_id,
            operation: request.operation,
            immediate: request.immediate,
            signaled: request.flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0,
            solicited: request.flags & ibv_send_flags::IBV_SEND_SOLICITED.0 != 0,
            fence: request.flags & ibv_send_flags::IBV_SEND_FENCE.0 != 0,
            payload: if request.inline { Payload::Inline(sges) } else { Payload::Registered(sges) },
            datagram: request.datagram,
        })
    }
}

/// Collects requests; held by a thread from `wr_start` to `wr_complete` or `wr_abort`.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) latch: Latch,
    pub(super) batch: UnsafeCell<Batch>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setter_without_a_request_is_an_error() {
        let mut batch = Batch::default();
        batch.set_elements(&[]);
        assert_eq!(batch.error, Some(libc::EINVAL));
        batch.clear();
        assert_eq!(batch.error, None);
    }
}
