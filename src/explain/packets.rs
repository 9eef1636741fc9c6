//! Describes recorded packets, a few lines each.

use verbs::RecordedPacket;
use verbs::wire::{Packet, Syndrome};

use super::columns::{duration, folded, padded};
use super::dump::{bytes_a_row, row_text};
use super::text::{Key, Language};

/// The most packets shown.
const MOST: usize = 10;
/// The most bytes of a payload shown.
const PAYLOAD_BYTES: usize = 32;
const LABEL: usize = 9;
/// Where the values of a header stand.
const VALUE: usize = 4 + LABEL - 1;

/// The lines for the packets of a QP, of so many columns: `(line, is a heading)`.
pub(super) fn lines(
    packets: &[RecordedPacket],
    qpn: u32,
    language: Language,
    columns: usize,
) -> Vec<(String, bool)> {
    let mut lines = Vec::new();
    let start_ns = packets.first().map_or(0, |packet| packet.at_ns);
    let mut shown = 0;
    let ours: Vec<_> = packets.iter().filter(|packet| concerns(packet, qpn)).collect();
    for (place, packet) in ours.iter().take(MOST).enumerate() {
        let is_again = packet.outwards && ours[..place].iter().any(|it| it.bytes == packet.bytes);
        let mut text_lines = packet_lines(packet, start_ns, language, columns);
        if is_again {
            text_lines.truncate(1);
            let text = language.text(Key::PacketAgain);
            text_lines.push((format!("    {text}"), false));
        }
        lines.extend(text_lines);
        shown += 1;
    }
    let more = ours.len() - shown;
    if more > 0 {
        let text = language.filled(Key::MorePackets, &[("n", &more.to_string())]);
        lines.push((text, false));
    }
    lines
}

/// Whether to show this packet: a device shared by both ends records each packet twice, and incoming packets must be
/// for this QP.
fn concerns(packet: &RecordedPacket, qpn: u32) -> bool {
    match Packet::parse(&packet.bytes) {
        Ok(parsed) if packet.outwards => parsed.destination_qpn != qpn,
        Ok(parsed) => parsed.destination_qpn == qpn,
        Err(_) => true,
    }
}

fn packet_lines(
    passed: &RecordedPacket,
    start_ns: u64,
    language: Language,
    columns: usize,
) -> Vec<(String, bool)> {
    let after = duration(passed.at_ns.saturating_sub(start_ns));
    let (arrow, direction) =
        if passed.outwards { ("→", Key::PacketSent) } else { ("←", Key::PacketReceived) };
    let head = format!(
        "{}  {arrow} {}",
        padded(&format!("+{after}"), 11),
        padded(language.text(direction), LABEL)
    );
    let packet = match Packet::parse(&passed.bytes) {
        Ok(packet) => packet,
        Err(error) => {
            let text = language.filled(Key::PacketUnknown, &[("why", &error.to_string())]);
            return vec![(format!("{head} {text}"), true)];
        }
    };
    let mut lines = vec![(format!("{head} {}", packet.opcode.name()), true)];
    let mut line = |label: &str, text: String| {
        let whole = format!("    {} {text}", padded(label, LABEL - 2));
        let folded = folded(&whole, columns, VALUE);
        lines.extend(folded.into_iter().map(|line| (line, false)));
    };
    let mut bth = format!(
        "opcode {:#04x}  dest QPN {:#08x}  PSN {:#08x}",
        packet.opcode.byte(packet.service),
        packet.destination_qpn,
        packet.psn.value()
    );
    if packet.ack_request {
        bth += &format!("  A=1 ({})", language.text(Key::PacketAckRequest));
    }
    line("BTH", bth);
    if let Some(reth) = packet.extended.reth {
        line(
            "RETH",
            format!("va {:#x}  rkey {:#x}  length {}", reth.address, reth.rkey, reth.length_bytes),
        );
    }
    if let Some(aeth) = packet.extended.aeth {
        line("AETH", format!("{}  MSN {}", syndrome_text(aeth.syndrome), aeth.msn));
    }
    if let Some(immediate) = packet.extended.immediate {
        line("ImmDt", format!("{immediate:#010x}"));
    }
    if !packet.payload.is_empty() {
        let bytes = packet.payload.len().to_string();
        let text = match packet.pad_bytes() {
            0 => language.filled(Key::PacketPayload, &[("n", &bytes)]),
            pad => language.filled(Key::PacketPadding, &[("n", &bytes), ("pad", &pad.to_string())]),
        };
        line("payload", text);
        let shown = packet.payload.len().min(PAYLOAD_BYTES);
        let bytes_a_row = bytes_a_row(columns.saturating_sub(VALUE));
        for row in packet.payload[..shown].chunks(bytes_a_row) {
            line("", row_text(row, bytes_a_row));
        }
        if packet.payload.len() > shown {
            line("", "…".to_owned());
        }
    }
    let icrc = if passed.icrc_ok { Key::PacketIcrcOk } else { Key::PacketIcrcWrong };
    let crc = passed.bytes.last_chunk::<4>().copied().unwrap_or_default();
    line("ICRC", format!("{:#010x}  {}", u32::from_le_bytes(crc), language.text(icrc)));
    lines
}

fn syndrome_text(syndrome: Syndrome) -> String {
    let what = match syndrome {
        // The five-bit code stands for a number of credits, and 31 for none that are counted.
        Syndrome::Ack { credits: 31 } => "ACK, credits not counted".to_owned(),
        Syndrome::Ack { credits } => format!("ACK, credit code {credits}"),
        Syndrome::RnrNak { timer } => format!("RNR NAK, timer {timer}"),
        Syndrome::Nak(code) => format!("NAK, {code:?}"),
        Syndrome::Reserved(_) => "reserved".to_owned(),
    };
    format!("syndrome {:#04x} ({what})", syndrome.byte())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::columns::PAGE;
    use super::*;
    use verbs::wire::{Aeth, Extended, NakCode, Opcode, Psn, Reth, Service};

    fn recorded(opcode: Opcode, extended: Extended, payload: &[u8], qpn: u32) -> RecordedPacket {
        let packet = Packet {
            service: Service::Rc,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: qpn,
            ack_request: opcode == Opcode::WriteOnly,
            psn: Psn::new(0x10),
            extended,
            payload,
        };
        let mut room = [0; Packet::HEADER_ROOM];
        let length = packet.headers(&mut room);
        let mut bytes = room[..length].to_vec();
        bytes.extend(payload);
        bytes.extend(vec![0; usize::from(packet.pad_bytes())]);
        bytes.extend([1, 2, 3, 4]);
        RecordedPacket {
            at_ns: if qpn == 7 { 42_000 } else { 1000 },
            outwards: qpn != 7,
            peer: IpAddr::from([127, 0, 0, 1]),
            bytes,
            icrc_ok: qpn != 7,
        }
    }

    #[test]
    fn every_header_is_shown() {
        let reth = Reth { address: 0x7f00, rkey: 0x99, length_bytes: 6 };
        let aeth = Aeth { syndrome: Syndrome::Nak(NakCode::RemoteAccessError), msn: 1 };
        let write = Extended { reth: Some(reth), ..Extended::default() };
        let answer = Extended { aeth: Some(aeth), ..Extended::default() };
        let packets = [
            recorded(Opcode::WriteOnly, write, b"Hello!", 9),
            recorded(Opcode::Acknowledge, answer, b"", 7),
            // Belongs to another QP of the same device.
            recorded(Opcode::Acknowledge, answer, b"", 8),
        ];
        let mut other = packets.to_vec();
        other[2].outwards = false;
        let lines: Vec<String> =
            lines(&other, 7, Language::En, PAGE).into_iter().map(|(line, _)| line).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_no_packet_and_what_is_too_many() {
        let mut packet = recorded(Opcode::SendOnly, Extended::default(), b"x", 9);
        packet.bytes.truncate(5);
        let shown = lines(&vec![packet; MOST + 3], 7, Language::Zh, PAGE);
        assert_eq!(shown.len(), MOST + MOST - 1 + 1);
        assert!(shown[0].0.contains("无法识别"), "{}", shown[0].0);
        assert!(shown.last().unwrap().0.contains('3'));
    }
}
