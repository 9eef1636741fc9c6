//! Packets of scripts: made of a line's words and fields, and taken apart into such. Their names are the specification's.

use softroce::net::Datagram;
use softroce::wire::{
    Aeth, AtomicEth, Cnp, Deth, Extended, NakCode, Opcode, Packet, PacketKind, Psn, Reth, Service,
    Syndrome,
};

use super::device::Device;
use super::language::{Fields, bytes, number};
use crate::support::end::QKEY;
use crate::support::peer::{QPN, wire};

/// Of packet 0 at both ends: the 24 bits wrap after the second packet.
pub const FIRST_PSN: u32 = 0x00ff_fffe;
/// By the two bits of the traffic class.
pub const ECN: [&str; 4] = ["none", "ect1", "ect0", "ce"];
/// By their codes.
const NAKS: [(NakCode, &str); 4] = [
    (NakCode::PsnSequenceError, "sequence"),
    (NakCode::InvalidRequest, "invalid_request"),
    (NakCode::RemoteAccessError, "remote_access"),
    (NakCode::RemoteOperationalError, "remote_operational"),
];

fn opcode_name(opcode: Opcode) -> String {
    opcode.name().trim_start_matches("RDMA ").replace(' ', "_").to_uppercase()
}

/// The packet to a device that a line has, but for its CRC.
pub fn built(device: &Device, words: &[&str], fields: &mut Fields) -> Result<Vec<u8>, String> {
    let mut destination_qpn = device.qp(fields)?.number();
    if fields.take("dqpn").is_some() {
        // Any other.
        destination_qpn ^= 1 << 20;
    }
    let pkey = fields.number("pkey", 0xffff)? as u16;
    if words == ["CNP"] {
        return Ok(Cnp { destination_qpn, pkey }.to_bytes().into());
    }
    let syndrome = match words {
        ["NAK", code] => {
            let known = NAKS.iter().find(|(_, name)| name == code);
            Syndrome::Nak(known.ok_or("There is no such NAK.")?.0)
        }
        ["RNR_NAK"] => Syndrome::RnrNak { timer: fields.number("timer", 0)? as u8 },
        [_] => Syndrome::Ack { credits: 31 },
        _ => return Err("A packet has one name, and its fields are `name=value`.".into()),
    };
    let unknown = words[0].strip_prefix("0x").map(|hex| u8::from_str_radix(hex, 16));
    let opcode = match words[0] {
        "ACK" | "NAK" | "RNR_NAK" => Opcode::Acknowledge,
        _ if unknown.is_some() => Opcode::Acknowledge,
        name => {
            let known = Opcode::ALL.iter().find(|opcode| opcode_name(**opcode) == name);
            *known.ok_or("There is no such packet.")?
        }
    };
    let service = fields.take("service").map_or(device.end.plan.kind, |_| Service::Uc);
    let payload = match fields.take("data") {
        Some(data) => bytes(&data)?,
        None => vec![0; fields.number("len", 0)? as usize],
    };
    let asks = service == Service::Rc && !opcode.is_answer();
    let psn = fields.take("psn").ok_or("`psn=` is missing.")?;
    let packet = Packet {
        service,
        opcode,
        solicited: false,
        pkey,
        destination_qpn,
        ack_request: fields.number("ackreq", asks.into())? != 0,
        psn: Psn::new(FIRST_PSN.wrapping_add(number(&psn)? as u32)),
        extended: extended(device, opcode, service, syndrome, payload.len(), fields)?,
        payload: &payload,
    };
    let mut whole = wire(&packet);
    if let Some(code) = unknown {
        whole[0] = code.map_err(|_| "There is no such opcode.")?;
    }
    Ok(whole)
}

fn extended(
    device: &Device,
    opcode: Opcode,
    service: Service,
    syndrome: Syndrome,
    payload_bytes: usize,
    fields: &mut Fields,
) -> Result<Extended, String> {
    let mut extended = Extended::default();
    if service == Service::Ud {
        extended.deth = Some(Deth { qkey: QKEY, source_qpn: QPN });
    }
    if opcode.has_reth() {
        let (address, rkey) = device.remote(fields)?;
        let length_bytes = fields.number("dmalen", payload_bytes as i64)? as u32;
        extended.reth = Some(Reth { address, rkey, length_bytes });
    }
    if opcode.has_atomic_eth() {
        let (address, rkey) = device.remote(fields)?;
        extended.atomic = Some(AtomicEth { address, rkey, swap_or_add: 1, compare: 0 });
    }
    if opcode.has_aeth() {
        extended.aeth = Some(Aeth { syndrome, msn: fields.number("msn", 1)? as u32 });
    }
    if opcode.has_immediate() {
        extended.immediate = Some(fields.number("imm", 0)? as u32);
    }
    if opcode.has_ieth() {
        let key = fields.take("inv").ok_or("`inv=` is missing.")?;
        extended.invalidated = Some(device.key(&key)?);
    }
    Ok(extended)
}

/// A packet's words, fields and payload.
pub fn apart(device: &Device, datagram: &Datagram) -> (String, Fields, Vec<u8>) {
    let body = &datagram.bytes[..datagram.bytes.len().saturating_sub(4)];
    let mut fields = Fields::default();
    fields.push("ecn", ECN[usize::from(datagram.traffic_class & 3)]);
    let mut cnp = [0; 28];
    cnp[..5].copy_from_slice(&[0x81, 0, 0xff, 0xff, 0x40]);
    cnp[5..8].copy_from_slice(&QPN.to_be_bytes()[1..]);
    let Ok(packet) = Packet::parse_body(body) else {
        let words = if body == cnp { "CNP".into() } else { format!("{body:02x?}") };
        return (words, fields, Vec::new());
    };
    fields.push("psn", packet.psn.distance_from(Psn::new(FIRST_PSN)));
    fields.push("len", packet.payload.len());
    fields.push("ackreq", u8::from(packet.ack_request));
    fields.push("pkey", packet.pkey);
    fields.push("dqpn", if packet.destination_qpn == QPN { "peer" } else { "?" });
    let mut words = opcode_name(packet.opcode);
    let extended = packet.extended;
    if let Some(Aeth { syndrome, msn }) = extended.aeth {
        fields.push("msn", msn);
        words = match syndrome {
            Syndrome::Ack { credits } => {
                fields.push("credits", credits);
                if packet.opcode.kind() == PacketKind::Ack { "ACK".into() } else { words }
            }
            Syndrome::RnrNak { timer } => {
                fields.push("timer", timer);
                "RNR_NAK".into()
            }
            Syndrome::Nak(code) => format!("NAK {}", name(code, &NAKS)),
            Syndrome::Reserved(byte) => format!("NAK {byte:#x}"),
        };
    }
    let reth = extended.reth.map(|reth| (reth.address, reth.rkey));
    let atomic = extended.atomic.map(|atomic| (atomic.address, atomic.rkey));
    if let Some((address, rkey)) = reth.or(atomic) {
        fields.push("va", address.wrapping_sub(device.end.address(0)).cast_signed());
        fields.push("rkey", device.key_name(rkey));
    }
    if let Some(Reth { length_bytes, .. }) = extended.reth {
        fields.push("dmalen", length_bytes);
    }
    if let Some(immediate) = extended.immediate {
        fields.push("imm", immediate);
    }
    if let Some(key) = extended.invalidated {
        fields.push("inv", device.key_name(key));
    }
    (words, fields, packet.payload.to_vec())
}

pub fn name<T: Copy + PartialEq>(value: T, names: &[(T, &'static str)]) -> &'static str {
    names.iter().find(|(known, _)| *known == value).map_or("?", |(_, name)| name)
}
