//! The notification point of congestion (annex A17.9, and DCQCN, which `state/sending_rate` names): answers packets that
//! came marked by a CNP. It must not know rates.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::progress::Arrived;
use crate::transport::qp_state::Kind;
use crate::transport::work_queues::PKEY;
use crate::wire::{Cnp, PacketKind};

/// The least time between two CNPs of a QP (DCQCN's N).
const CNP_INTERVAL_NS: u64 = 50_000;

impl QpWork<'_> {
    /// Tells the sender of a marked packet, unless it was told a short time ago. Only of reliable connections: other QPs of
    /// this device send nothing that may be marked. A CNP is not answered.
    #[cold]
    pub(crate) fn notify_sender(
        self,
        outbox: &mut Outbox<'_>,
        arrived: &Arrived<'_>,
        source: SocketAddr,
    ) {
        let statistics = &self.core.statistics;
        statistics.np_ecn_marked_roce_packets.add(1);
        let due_ns = self.qp.next_cnp_ns.load(Ordering::Relaxed);
        let is_answered = self.qp.kind == Kind::Rc && !matches!(arrived, Arrived::Notification);
        if !is_answered || self.now_ns < due_ns || !self.qp.state().receives() {
            return;
        }
        let responder = self.qp.responder.lock();
        let path = responder.path_from(source).cloned();
        drop(responder);
        // While a socket is full, a CNP would wait behind all the rest.
        let Some(path) = path.filter(|_| !self.core.transmitter.is_full()) else {
            return;
        };
        let next_ns = self.now_ns + CNP_INTERVAL_NS;
        self.qp.next_cnp_ns.store(next_ns, Ordering::Relaxed);
        let cnp = Cnp { destination_qpn: path.qpn, pkey: PKEY };
        outbox.push_headers(&path.flow, &cnp.to_bytes());
        statistics.np_cnp_sent.add(1);
        // How many data of READs are on their way is for this end to say: it has asked for them.
        if let Arrived::Packet(packet) = arrived
            && packet.opcode.kind() == PacketKind::ReadResponse
        {
            self.qp.requester.lock().slow_down(self.now_ns);
        }
    }
}
