//! The parts of a step as lines of text: calls as C code, the connection arrays of both ends side by side, memory in hex,
//! and recorded packets; and how text stands on a terminal: its width and lines, indentation, and colours. Chinese characters
//! take two columns, and lines may break between them. The text must be complete without colours.

use std::fmt::Write as _;

use node::lesson::{Array, Call, End, Field, Note, Part};
use protocol::endpoints::QpEndpoint;
use results::text::printable;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use verbs::{
    Gid, RecordedPacket,
    wire::{Packet, Syndrome},
};

use super::text::{Key, Language, text_of_note};

const FIELD: usize = 10;
/// The remark column moves for values up to this width.
const WIDEST_VALUE: usize = 28;
/// Fewest columns of a remark.
const NARROWEST_NOTE: usize = 16;

/// Adds the lines of a call.
pub(super) fn write_call(out: &mut String, call: &Call, presentation: &Presentation) {
    let Presentation { language, style, columns, .. } = *presentation;
    let whose = match call.end {
        End::This => String::new(),
        End::Other => format!("({}) ", language.text(Key::OtherEnd)),
    };
    let returned = format!("→ {}", style.code(&call.returned));
    if is_short(call) {
        let code = style.code(&call.code);
        line_at(out, CALL, &format!("{whose}{code} {returned}"));
        return;
    }
    let room = columns.saturating_sub(CALL + width(&whose));
    let mut lines = wrapped(&call.code, room).into_iter();
    let first = lines.next().unwrap_or_default();
    let whose = style.faint(&whose);
    line_at(out, CALL, &format!("{whose}{}", style.code(&first)));
    for line in lines {
        line_at(out, CALL + 4, &style.code(&line));
    }
    fields(out, &call.given, presentation);
    line_at(out, CALL + 2, &returned);
    fields(out, &call.came, presentation);
}

fn fields(out: &mut String, fields: &[Field], presentation: &Presentation) {
    let style = presentation.style;
    let names = fields.iter().map(|field| width(field.name)).max();
    let values = fields
        .iter()
        .filter(|field| field.note.is_some())
        .map(|field| width(&field.value))
        .filter(|width| *width <= WIDEST_VALUE)
        .max();
    for field in fields {
        let name = padded(field.name, names.unwrap_or(0));
        let Some(note) = field.note else {
            line_at(out, FIELD, &format!("{name}  {}", style.code(&field.value)));
            continue;
        };
        let value = padded(&field.value, values.unwrap_or(0));
        let before = FIELD + width(&name) + width(&value) + 4;
        let room = presentation.columns.saturating_sub(before);
        let note = note_text(note, &field.value, presentation);
        let mut notes = wrapped(&note, room.max(NARROWEST_NOTE)).into_iter();
        let first = notes.next().unwrap_or_default();
        let line = format!("{name}  {}  {}", style.code(&value), style.faint(&first));
        line_at(out, FIELD, &line);
        for rest in notes {
            line_at(out, before, &style.faint(&rest));
        }
    }
}

fn note_text(note: Note, value: &str, presentation: &Presentation) -> String {
    let key = text_of_note(note);
    if note != Note::Timeout {
        return presentation.language.text(key).to_owned();
    }
    // 4.096 µs times two to the power of the code (InfiniBand specification 11.2.4.2).
    let code: u32 = value.parse().unwrap_or(0);
    let ms = 4.096e-3 * f64::from(code).exp2();
    presentation.language.filled(key, &[("ms", &format!("{ms:.0}"))])
}

/// The most QPs shown; a peer may send any number.
const MOST_QPS: usize = 4;

/// Stands for a value that an end did not send.
const NOTHING: &str = "–";

type Value = fn(&QpEndpoint) -> String;

/// The lines of the table.
pub(super) fn arrays(array: &Array, language: Language) -> Vec<String> {
    let ends = [&array.ours, &array.theirs];
    let mut rows = vec![[
        String::new(),
        language.text(Key::ThisEnd).to_owned(),
        language.text(Key::OtherEnd).to_owned(),
    ]];
    rows.push(row(language.text(Key::RowGid), ends.map(|end| gid_text(&end.gid))));
    rows.push(row(language.text(Key::RowMtu), ends.map(|end| end.mtu_bytes.to_string())));
    let most = ends.map(|end| end.qps.len()).into_iter().max().unwrap_or(0);
    let values: [(Key, Value); 5] = [
        (Key::RowQpn, |qp| format!("{:#08x}", qp.qpn)),
        (Key::RowPsn, |qp| format!("{:#08x}", qp.psn)),
        (Key::RowAddress, |qp| offered(qp, format!("{:#x}", qp.address))),
        (Key::RowRkey, |qp| offered(qp, format!("{:#x}", qp.rkey))),
        (Key::RowLength, |qp| offered(qp, qp.length.to_string())),
    ];
    for index in 0..most.min(MOST_QPS) {
        let number = if most > 1 { format!("QP {index}: ") } else { String::new() };
        for (key, value) in values {
            rows.push(row(
                &format!("{number}{}", language.text(key)),
                ends.map(|end| end.qps.get(index).map_or(NOTHING.to_owned(), value)),
            ));
        }
    }
    let columns =
        [0, 1].map(|place| rows.iter().map(|row| width(&row[place])).max().unwrap_or(0) + 2);
    rows.iter()
        .map(|[name, ours, theirs]| {
            let line = padded(name, columns[0]) + &padded(ours, columns[1]) + theirs;
            line.trim_end().to_owned()
        })
        .collect()
}

fn row(name: &str, [ours, theirs]: [String; 2]) -> [String; 3] {
    [name.to_owned(), ours, theirs]
}

/// Shows an address only for memory that a peer may access.
fn offered(qp: &QpEndpoint, text: String) -> String {
    match qp.length {
        0 => NOTHING.to_owned(),
        _ => text,
    }
}

fn gid_text(text: &str) -> String {
    Gid::parse(text).map_or_else(|| printable(text, 45), |gid| gid.to_string())
}

/// The most bytes of memory shown; of more, their number.
const MOST_MEMORY_BYTES: usize = 96;
/// Columns of sixteen bytes in hex and as characters.
const SIXTEEN_BYTES: usize = 67;
/// Columns of an address before them.
pub(super) const ADDRESS_COLUMNS: usize = 16;

/// How many bytes a row of at most so many columns has.
pub(super) fn bytes_a_row(columns: usize) -> usize {
    if columns < SIXTEEN_BYTES { 8 } else { 16 }
}

/// The rows, each with its address.
pub(super) fn memory(address: u64, bytes: &[u8], bytes_a_row: usize) -> Vec<String> {
    let shown = &bytes[..bytes.len().min(MOST_MEMORY_BYTES)];
    let mut rows: Vec<String> = shown
        .chunks(bytes_a_row)
        .enumerate()
        .map(|(index, row)| {
            let at = address.wrapping_add((index * bytes_a_row) as u64);
            format!("{at:#014x}  {}", row_text(row, bytes_a_row))
        })
        .collect();
    if bytes.len() > shown.len() {
        rows.push(format!("…  {} bytes", bytes.len()));
    }
    rows
}

/// `48 65 6c …  |Hel…|`
pub(super) fn row_text(row: &[u8], bytes_a_row: usize) -> String {
    let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = row
        .iter()
        .map(|byte| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '·',
        })
        .collect();
    format!("{}  |{text}|", padded(&hex.join(" "), bytes_a_row * 3 - 1))
}

/// The most packets shown; of more, their number.
const MOST_PACKETS: usize = 10;
/// The most bytes of a payload shown.
const PAYLOAD_BYTES: usize = 32;
const LABEL: usize = 9;
/// Where the values of a header stand.
const VALUE: usize = 4 + LABEL - 1;

/// The lines for the packets of a QP, of so many columns: `(line, is a heading)`.
pub(super) fn packets(
    packets: &[RecordedPacket],
    qpn: u32,
    language: Language,
    columns: usize,
) -> Vec<(String, bool)> {
    let mut lines = Vec::new();
    let start_ns = packets.first().map_or(0, |packet| packet.at_ns);
    let mut shown = 0;
    let ours: Vec<_> = packets.iter().filter(|packet| concerns(packet, qpn)).collect();
    for (place, packet) in ours.iter().take(MOST_PACKETS).enumerate() {
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

/// Columns of a line, unless the terminal has fewer.
pub const PAGE: usize = 92;

/// Characters that must not start a line.
const CLOSING: &str = "，。；：、）！？」』”》…";
/// Characters that must not end a line.
const OPENING: &str = "（「『“《";

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Pads a text with spaces to this many columns.
pub fn padded(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(spaces))
}

/// A duration for people: in microseconds, or in milliseconds if long.
pub(super) fn duration(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{} µs", ns / 1000),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Breaks a text into lines of at most `columns`, at spaces and between wide characters; a longer word gets its own
/// line.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for unit in units(text) {
        let Some(line) = lines.last_mut() else { break };
        let space = usize::from(unit.after_space && !line.is_empty());
        if !line.is_empty() && width(line) + space + width(&unit.text) > columns {
            lines.push(unit.text);
        } else {
            line.push_str(&" ".repeat(space));
            line.push_str(&unit.text);
        }
    }
    lines
}

/// Breaks a line of columns, which two spaces separate, between columns; what does not fit goes below `indent` spaces.
pub(super) fn folded(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for column in line.split_inclusive("  ") {
        match lines.last_mut() {
            Some(last) if width(last) + width(column.trim_end()) <= columns => {
                last.push_str(column);
            }
            Some(_) => lines.push(format!("{:indent$}{column}", "")),
            None => lines.push(column.to_owned()),
        }
    }
    lines
}

/// A part of a text that is not broken.
struct Unit {
    text: String,
    after_space: bool,
    /// Whether the next character belongs to it.
    open: bool,
    wide: bool,
}

fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut after_space = false;
    for char in text.chars() {
        if char == ' ' {
            after_space = true;
            continue;
        }
        let wide = char.width().unwrap_or(0) > 1;
        let joins = units.last().is_some_and(|last| {
            !after_space && (last.open || CLOSING.contains(char) || !wide && !last.wide)
        });
        let open = OPENING.contains(char);
        match units.last_mut() {
            Some(last) if joins => {
                last.text.push(char);
                last.open = open;
                last.wide = wide;
            }
            _ => units.push(Unit {
                text: char.into(),
                after_space: std::mem::take(&mut after_space),
                open,
                wide,
            }),
        }
    }
    units
}

/// Indentation of a step's contents.
pub(super) const INDENT: usize = 4;
pub(super) const CALL: usize = 6;

/// Calls longer than this take several lines.
const WIDEST_SHORT: usize = 64;

/// Whether a call fits one line: it is short and has no structs.
pub(super) fn is_short(call: &Call) -> bool {
    call.given.is_empty() && call.came.is_empty() && width(&call.code) <= WIDEST_SHORT
}

/// Whether to put an empty line before this part of a step.
pub(super) fn stands_apart(part: &Part, previous: Option<&Part>) -> bool {
    match (part, previous) {
        (Part::Call(call), Some(Part::Call(before))) => !(is_short(call) && is_short(before)),
        (Part::States(..), Some(Part::Memory { .. }) | None) => true,
        (Part::States(..) | Part::Waited { .. } | Part::Theirs(_) | Part::Unseen { .. }, _) => {
            false
        }
        _ => true,
    }
}

/// Adds an indented line without trailing spaces.
pub(super) fn line_at(out: &mut String, indent: usize, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", " ".repeat(indent), line.trim_end());
}

#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    pub fn plain() -> Style {
        Style { coloured: false }
    }

    /// Escape sequences for a terminal.
    pub fn coloured() -> Style {
        Style { coloured: true }
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn heading(self, text: &str) -> String {
        self.marked("1", text)
    }

    pub(super) fn code(self, text: &str) -> String {
        self.marked("36", text)
    }

    pub(super) fn state(self, text: &str) -> String {
        self.marked("32", text)
    }

    pub(super) fn careful(self, text: &str) -> String {
        self.marked("33", text)
    }

    pub(super) fn error(self, text: &str) -> String {
        self.marked("1;31", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }
}

/// How a lesson is shown.
#[derive(Clone, Copy, Debug)]
pub struct Presentation {
    /// The language of its texts.
    pub language: Language,
    pub style: Style,
    /// Columns of a line; names, numbers and code that do not fit are longer.
    pub columns: usize,
    /// With a mistake: all steps, and not only those in which the lesson differs from one without it.
    pub has_all_steps: bool,
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use verbs::wire::{Aeth, Extended, NakCode, Opcode, Psn, Reth, Service};

    use super::*;

    #[test]
    fn calls_and_remarks_keep_to_the_columns() {
        let call =
            Call::new("ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU)", "0")
                .given_as("min_rnr_timer", 12, Note::MinRnrTimer)
                .given_as("ah_attr.grh.dgid", "::ffff:127.0.0.1", Note::TheirGid);
        for language in Language::ALL {
            for columns in [92, 72] {
                let presentation =
                    Presentation { language, style: Style::plain(), columns, has_all_steps: false };
                let mut out = String::new();
                write_call(&mut out, &call, &presentation);
                let widest = out.lines().map(width).max();
                assert!(widest <= Some(columns), "{widest:?} of {columns}:\n{out}");
            }
        }
    }

    #[test]
    fn memory_have_addresses_hex_and_characters() {
        let text = "Hello, 你好! 12345".as_bytes();
        let shown = memory(0x7f00_0000_0000, text, bytes_a_row(67)).join("\n");
        let expected = "0x7f0000000000  48 65 6c 6c 6f 2c 20 e4 bd a0 e5 a5 bd 21 20 31  |Hello, ······! 1|\n\
                        0x7f0000000010  32 33 34 35                                      |2345|";
        assert_eq!(shown, expected);
        for (columns, lines) in [(SIXTEEN_BYTES, 7), (SIXTEEN_BYTES - 1, 13)] {
            let rows = memory(0, &[b'x'; 1000], bytes_a_row(columns));
            assert_eq!(rows.len(), lines);
            assert!(rows.iter().all(|line| line.len() <= ADDRESS_COLUMNS + columns));
        }
    }

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
        let recorded = [
            recorded(Opcode::WriteOnly, write, b"Hello!", 9),
            recorded(Opcode::Acknowledge, answer, b"", 7),
            // Belongs to another QP of the same device.
            recorded(Opcode::Acknowledge, answer, b"", 8),
        ];
        let mut other = recorded.to_vec();
        other[2].outwards = false;
        let lines: Vec<String> =
            packets(&other, 7, Language::En, PAGE).into_iter().map(|(line, _)| line).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_no_packet_and_what_is_too_many() {
        let mut packet = recorded(Opcode::SendOnly, Extended::default(), b"x", 9);
        packet.bytes.truncate(5);
        let shown = packets(&vec![packet; MOST_PACKETS + 3], 7, Language::Zh, PAGE);
        assert_eq!(shown.len(), MOST_PACKETS + MOST_PACKETS - 1 + 1);
        assert!(shown[0].0.contains("无法识别"), "{}", shown[0].0);
        assert!(shown.last().unwrap().0.contains('3'));
    }

    #[test]
    fn times_are_short() {
        assert_eq!(duration(1_234_567), "1234 µs");
        assert_eq!(duration(134_710_000), "134.7 ms");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("QP 号"), 5);
        assert_eq!(padded("号", 4), "号  ");
        assert_eq!(padded("long", 2), "long");
    }

    #[test]
    fn lines_break_at_spaces_and_between_wide_characters() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("much-too-long a", 4), ["much-too-long", "a"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("内存必须注册", 8), ["内存必须", "注册"]);
        assert_eq!(wrapped("把 QP 置为 RTR", 6), ["把 QP", "置为", "RTR"]);
    }

    #[test]
    fn lines_of_columns_break_between_columns() {
        let line = "    BTH     opcode 0x0a  dest QPN 0x02  PSN 0x03";
        assert_eq!(folded(line, 80, 12), [line]);
        let halves = ["    BTH     opcode 0x0a  dest QPN 0x02  ", "            PSN 0x03"];
        assert_eq!(folded(line, 40, 12), halves);
    }

    #[test]
    fn punctuation_keeps_to_its_side() {
        assert_eq!(wrapped("内存，注册", 4), ["内", "存，", "注册"]);
        assert_eq!(wrapped("内存（注册）", 6), ["内存", "（注", "册）"]);
        assert_eq!(wrapped("（QP）", 2), ["（QP）"]);
    }

    #[test]
    fn only_terminals_get_marks() {
        assert_eq!(Style::plain().error("x"), "x");
        assert_eq!(Style::coloured().heading("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(Style::coloured().code(""), "");
    }
}
