//! Describes verbs calls for a lesson: their C code, the contents of their structs, and their results. Makes no
//! calls.

use verbs::{Access, LinkLayer, MemoryRegion, Port, QpCapacity, Reliability, VerbsError, WcStatus};

use super::objects::{Connection, Transfer};
use super::{Call, End, Note, Part};
use protocol::lesson::{OtherEnd, PostedReceive, SeenCompletion};
use results::text::printable;

fn hex(value: u32) -> String {
    format!("{value:#x}")
}

/// A QPN or PSN: 24 bits.
fn number(value: u32) -> String {
    format!("{value:#08x}")
}

fn mtu_name(code: u32) -> String {
    format!("IBV_MTU_{}", 128 << code.min(5))
}

/// The return value of a call, by name.
pub(crate) fn returned(done: &Result<(), VerbsError>) -> String {
    let error = match done {
        Ok(()) => return "0".to_owned(),
        Err(VerbsError::Call { source, .. }) => source,
        Err(other) => return other.to_string(),
    };
    let code = error.raw_os_error().unwrap_or(0);
    let name = match code {
        libc::EINVAL => "EINVAL",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        libc::EBUSY => "EBUSY",
        libc::ENOMEM => "ENOMEM",
        _ => return error.to_string(),
    };
    format!("{code} ({name})")
}

pub(crate) fn open(port: &Port) -> Vec<Part> {
    let name = port.context.name();
    vec![Part::Call(Call::new(format!("ibv_open_device({name})"), "context"))]
}

pub(crate) fn query(port: &Port) -> Vec<Part> {
    let info = &port.info;
    let link_layer = match info.link_layer {
        LinkLayer::Ethernet => "IBV_LINK_LAYER_ETHERNET".to_owned(),
        LinkLayer::Infiniband => "IBV_LINK_LAYER_INFINIBAND".to_owned(),
        LinkLayer::Other(code) => code.to_string(),
    };
    let query = Call::new(format!("ibv_query_port(context, {}, &attr)", info.port), "0")
        .came("state", format!("IBV_PORT_{}", info.state))
        .came("link_layer", link_layer)
        .came("max_mtu", info.max_mtu_bytes)
        .came("active_mtu", info.active_mtu_bytes);
    let gid = port.gid.map(|entry| {
        let code = format!("ibv_query_gid_ex(context, {}, {}, &entry, 0)", info.port, entry.index);
        Call::new(code, "0").came("gid", entry.gid).came("gid_type", entry.gid_type.name())
    });
    [Some(query), gid].into_iter().flatten().map(Part::Call).collect()
}

pub(crate) fn register(memory: &MemoryRegion, access: Access) -> Call {
    let code = format!(
        "ibv_reg_mr(pd, {:#x}, {}, {})",
        memory.address(),
        memory.length_bytes(),
        access.c_flags()
    );
    Call::new(code, "mr").came("lkey", hex(memory.lkey())).came("rkey", hex(memory.rkey()))
}

/// The other end's registration, from its message.
pub(crate) fn registered(other: &OtherEnd) -> Call {
    let (address, bytes) = (other.address, other.memory.len());
    let flags = printable(&other.access, 80);
    let code = format!("ibv_reg_mr(pd, {address:#x}, {bytes}, {flags})");
    Call::new(code, "mr").at(End::Other)
}

pub(crate) fn create_qp(capacity: QpCapacity, qpn: u32) -> Call {
    Call::new("ibv_create_qp(pd, &init)", "qp")
        .given("qp_type", "IBV_QPT_RC")
        .given("send_cq", "cq")
        .given("recv_cq", "cq")
        .given("cap.max_send_wr", capacity.send_wr)
        .given("cap.max_recv_wr", capacity.recv_wr)
        .came("qp_num", number(qpn))
}

pub(crate) fn to_init(port: u8, access: Access) -> Call {
    let may = match access {
        Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic => Note::RemoteMay,
        Access::LocalRead | Access::LocalWrite => Note::RemoteMayNot,
    };
    let mask = "IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS";
    Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), "0")
        .given("qp_state", "IBV_QPS_INIT")
        .given("pkey_index", 0)
        .given("port_num", port)
        .given_as("qp_access_flags", access.c_qp_flags(), may)
}

pub(crate) fn to_rtr(connection: &Connection, returned: String) -> Call {
    let Connection { remote, path, reliability, gid_note, mtu_note } = connection;
    let mask = "IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER";
    let call = Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), returned)
        .given("qp_state", "IBV_QPS_RTR")
        .given_as("path_mtu", mtu_name(path.mtu_code), *mtu_note)
        .given_as("dest_qp_num", number(remote.qpn), Note::TheirQpn)
        .given_as("rq_psn", number(remote.psn), Note::TheirPsn)
        .given("max_dest_rd_atomic", reliability.responder_reads)
        .given_as("min_rnr_timer", reliability.min_rnr_timer, Note::MinRnrTimer)
        .given("ah_attr.port_num", path.port);
    match path.gid_index {
        None => call.given("ah_attr.dlid", remote.lid),
        Some(index) => call
            .given("ah_attr.is_global", 1)
            .given_as("ah_attr.grh.dgid", remote.gid, *gid_note)
            .given_as("ah_attr.grh.sgid_index", index, Note::SourceGid)
            .given("ah_attr.grh.hop_limit", path.hop_limit),
    }
}

pub(crate) fn to_rts(psn: u32, reliability: &Reliability) -> Call {
    let mask = "IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC";
    let rnr = match reliability.rnr_retry {
        7 => Note::RnrForEver,
        _ => Note::RnrRetry,
    };
    Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), "0")
        .given("qp_state", "IBV_QPS_RTS")
        .given_as("sq_psn", number(psn), Note::OurPsn)
        .given_as("timeout", reliability.timeout, Note::Timeout)
        .given_as("retry_cnt", reliability.retry_cnt, Note::RetryCnt)
        .given_as("rnr_retry", reliability.rnr_retry, rnr)
        .given("max_rd_atomic", reliability.initiator_reads)
}

pub(crate) fn post_receive(receive: &PostedReceive) -> Call {
    Call::new("ibv_post_recv(qp, &wr, &bad_wr)", "0")
        .at(End::Other)
        .given_as("wr_id", receive.wr_id, Note::WrId)
        .given("sg_list[0].addr", format!("{:#x}", receive.address))
        .given("sg_list[0].length", receive.length_bytes)
        .given("sg_list[0].lkey", hex(receive.lkey))
}

pub(crate) fn post_send(transfer: &Transfer, memory: &MemoryRegion) -> Call {
    let profile = transfer.op.profile();
    let own = format!("{:#x}", memory.address());
    let call = Call::new("ibv_post_send(qp, &wr, &bad_wr)", "0")
        .given_as("wr_id", transfer.wr_id, Note::WrId)
        .given("opcode", profile.opcode)
        .given_as("send_flags", "IBV_SEND_SIGNALED", Note::Signalled)
        .given_as("sg_list[0].addr", own, Note::OurMemory)
        .given("sg_list[0].length", transfer.length_bytes)
        .given("sg_list[0].lkey", hex(memory.lkey()));
    if profile.receives {
        return call;
    }
    let key = if transfer.wrong_rkey { Note::WrongRkey } else { Note::TheirRkey };
    let address = format!("{:#x}", transfer.address);
    call.given_as("wr.rdma.remote_addr", address, Note::TheirAddress).given_as(
        "wr.rdma.rkey",
        hex(transfer.rkey),
        key,
    )
}

/// An `ibv_poll_cq` that returned this completion, or none.
pub(crate) fn poll(found: Option<&SeenCompletion>) -> Call {
    let code = "ibv_poll_cq(cq, 1, &wc)";
    let Some(found) = found else {
        return Call::new(code, "0");
    };
    let status = WcStatus(found.status);
    let call = Call::new(code, "1")
        .came("status", format!("IBV_WC_{status}"))
        .came_as("wr_id", found.wr_id, Note::WrId)
        .came("qp_num", number(found.qpn));
    if found.status != 0 {
        return call.came("vendor_err", hex(found.vendor_error));
    }
    let succeeded = call.came("opcode", format!("IBV_WC_{}", printable(&found.opcode, 20)));
    match found.opcode.as_str() {
        "RECV" => succeeded.came("byte_len", found.byte_len),
        _ => succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::Operation;

    #[test]
    fn errors_are_named_as_manual_pages_do() {
        let failed = |code| {
            Err(VerbsError::Call {
                operation: Operation::ModifyToInit,
                object: String::new(),
                source: std::io::Error::from_raw_os_error(code),
            })
        };
        assert_eq!(returned(&Ok(())), "0");
        assert_eq!(returned(&failed(libc::EINVAL)), "22 (EINVAL)");
        assert!(returned(&failed(libc::EIO)).contains("os error 5"));
    }

    #[test]
    fn a_failed_completion_shows_only_what_holds() {
        let mut seen = SeenCompletion {
            wr_id: 1,
            status: 10,
            opcode: String::new(),
            byte_len: 7,
            qpn: 0x11,
            vendor_error: 0x88,
        };
        let names = |call: &Call| call.came.iter().map(|it| it.name).collect::<Vec<_>>();
        let failed = poll(Some(&seen));
        assert_eq!(names(&failed), ["status", "wr_id", "qp_num", "vendor_err"]);
        assert_eq!(failed.came[0].value, "IBV_WC_REM_ACCESS_ERR (10)");
        (seen.status, seen.opcode) = (0, "RECV".into());
        let succeeded = poll(Some(&seen));
        let of_success = ["status", "wr_id", "qp_num", "opcode", "byte_len"];
        assert_eq!(names(&succeeded), of_success);
    }
}
