//! Writes a lesson as text, event by event.

use crate::lesson::{Begin, Call, End, Event, Field, Note, Part, Step, Topic};
use crate::protocol::mistake::Mistake;
use report::text::printable;
use settings::Op;
use verbs::{QpState, RecordedPacket};

use super::columns::{PAGE, duration, padded, width, wrapped};
use super::layout::{is_short, line_at, stands_apart};
use super::style::Style;
use super::text::{Key, Language};
use super::topics::by_access;
use super::verdict::Verdict;
use super::{arrays, dump, packets, topics};

/// Indentation of a step's contents.
const INDENT: usize = 4;
/// Indentation of calls.
const CALL: usize = 6;
/// Indentation of struct members.
const FIELD: usize = 10;
/// The remark column moves for values up to this width.
const WIDEST_VALUE: usize = 28;

/// Writes a lesson.
pub struct LessonWriter {
    language: Language,
    style: Style,
    op: Op,
    mistake: Option<Mistake>,
    steps: usize,
    /// Number of the step that showed the arrays.
    exchange: usize,
    failed: bool,
}

impl LessonWriter {
    /// A writer for a lesson about `op`.
    pub fn new(language: Language, style: Style, op: Op, mistake: Option<Mistake>) -> LessonWriter {
        LessonWriter {
            language,
            style,
            op,
            mistake,
            steps: 0,
            exchange: 0,
            failed: false,
        }
    }

    /// The text of an event.
    pub fn told(&mut self, event: &Event) -> String {
        match event {
            Event::Begin(begin) => self.begin(begin),
            Event::Step(step) => self.step(step),
        }
    }

    /// The text at the end.
    pub fn end(&self, verdict: Verdict) -> String {
        let mut out = String::new();
        if let Some(mistake) = self.mistake {
            let title = self.language.text(Key::WhyTitle);
            out += &format!("{}\n", self.style.heading(title));
            let exchange = self.exchange.to_string();
            for (label, text) in topics::explanation(mistake) {
                let text = self.language.filled(text, &[("exchange", &exchange)]);
                let label = self.language.text(label);
                out += &format!("\n{}{}\n", " ".repeat(INDENT), self.style.careful(label));
                self.paragraph(&mut out, INDENT, "", &text);
            }
            out.push('\n');
        }
        let mistakes = Mistake::ALL
            .iter()
            .filter(|mistake| mistake.fits(self.op))
            .map(|mistake| mistake.name())
            .collect::<Vec<_>>()
            .join("|");
        let name = self.mistake.map_or("", Mistake::name);
        let text = self
            .language
            .filled(verdict.key(), &[("name", name), ("mistakes", &mistakes)]);
        for line in wrapped(&text, PAGE) {
            let line = match verdict.is_good() {
                true => self.style.state(&line),
                false => self.style.error(&line),
            };
            out += &line;
            out.push('\n');
        }
        out
    }

    fn begin(&self, begin: &Begin) -> String {
        let text = |key, values: &[(&str, &str)]| self.language.filled(key, values);
        let head = by_access(begin.op, Key::HeadSend, Key::HeadWrite, Key::HeadRead);
        let mut titles = vec![text(head, &[("n", &begin.length_bytes.to_string())])];
        let broken = begin.mistake.map(|mistake| [("name", mistake.name())]);
        titles.extend(broken.map(|name| text(Key::HeadBroken, &name)));
        let this = if begin.embedded {
            Key::HeadThisEmbedded
        } else {
            Key::HeadThis
        };
        let port = begin.port.to_string();
        let this = text(this, &[("device", &begin.device), ("port", &port)]);
        let other = match &begin.server {
            None => text(Key::HeadLocal, &[]),
            Some(server) => text(Key::HeadRemote, &[("server", server)]),
        };
        let labels = [Key::ThisEnd, Key::OtherEnd].map(|key| self.language.text(key));
        let column = labels.iter().map(|label| width(label)).max().unwrap_or(0) + 2;
        let mut out = String::new();
        for title in titles {
            line_at(&mut out, 0, &self.style.heading(&title));
        }
        for (label, text) in labels.into_iter().zip([this, other]) {
            out += &format!("  {}{text}\n", padded(label, column));
        }
        out.push('\n');
        out
    }

    fn step(&mut self, step: &Step) -> String {
        self.steps += 1;
        if step.topic == Topic::Exchange {
            self.exchange = self.steps;
        }
        let texts = topics::texts(step.topic, self.op, self.failed);
        let unseen = matches!(step.parts.first(), Some(Part::Unseen { .. }));
        let mut out = String::new();
        let title = self.language.text(texts.title);
        let head = self.style.heading(&format!("{:2}  {title}", self.steps));
        let calls = match texts.calls {
            "" => String::new(),
            calls => format!("   {}", self.style.faint(calls)),
        };
        out += &format!("{head}{calls}\n");
        let body = if unseen { Key::UnseenBody } else { texts.body };
        self.paragraph(&mut out, INDENT, "", self.language.text(body));
        let mut previous = None;
        for part in &step.parts {
            if stands_apart(part, previous) {
                out.push('\n');
            }
            self.part(&mut out, part);
            previous = Some(part);
        }
        if let Some(careful) = texts.careful {
            out.push('\n');
            let label = self.language.text(Key::Careful);
            self.labelled(
                &mut out,
                INDENT,
                label,
                self.language.text(careful),
                Style::careful,
            );
        }
        out.push('\n');
        out
    }

    fn part(&mut self, out: &mut String, part: &Part) {
        match part {
            Part::Call(call) => self.call(out, call),
            Part::States(end, states) => self.states(out, *end, states),
            Part::Arrays(array) => {
                for line in arrays::lines(array, self.language) {
                    line_at(out, CALL, &line);
                }
            }
            Part::Memory {
                end,
                after,
                address,
                bytes,
                message_bytes,
            } => {
                let label = match (end, after) {
                    (End::This, false) => Key::MemoryThis,
                    (End::This, true) => Key::MemoryThisAfter,
                    (End::Other, false) => Key::MemoryOtherBefore,
                    (End::Other, true) => Key::MemoryOtherAfter,
                };
                line_at(out, CALL, self.language.text(label));
                for row in dump::rows(*address, bytes) {
                    line_at(out, CALL + 2, &self.style.code(&row));
                }
                let text = bytes.get(..*message_bytes).unwrap_or_default();
                if !text.is_empty() {
                    let text = printable(&String::from_utf8_lossy(text), 60);
                    let text = self.language.filled(Key::AsText, &[("text", &text)]);
                    line_at(out, CALL + 2, &text);
                }
            }
            Part::Waited { ns, empty_polls } => {
                let (time, polls) = (duration(*ns), empty_polls.to_string());
                let values = [("time", time.as_str()), ("polls", &polls)];
                let text = self.language.filled(Key::Waited, &values);
                line_at(out, CALL + 2, &self.style.faint(&text));
            }
            Part::OnPurpose => {
                if let Some(mistake) = self.mistake {
                    let text = self.language.text(topics::on_purpose(mistake));
                    let label = self.language.text(Key::OnPurpose);
                    self.labelled(out, INDENT, label, text, Style::error);
                }
            }
            Part::Failed(status) => {
                let meaning = self.language.text(topics::meaning(*status));
                let name = status.to_string();
                let values = [("status", name.as_str()), ("meaning", meaning)];
                let text = self.language.filled(Key::Status, &values);
                self.error(out, &text);
            }
            Part::Silence(seconds) => {
                let seconds = seconds.to_string();
                let text = self.language.filled(Key::Silence, &[("s", &seconds)]);
                self.error(out, &text);
            }
            Part::Error(error) => self.error(out, error),
            Part::Theirs(reason) => {
                let label = self.language.text(Key::OtherSays);
                self.labelled(out, INDENT, label, reason, Style::error);
            }
            Part::Packets { packets, qpn } => self.packets(out, packets, *qpn),
            Part::Unseen { netdev, software } => self.unseen(out, netdev.as_deref(), *software),
        }
    }

    fn error(&mut self, out: &mut String, text: &str) {
        self.failed = true;
        let label = self.language.text(Key::Error);
        self.labelled(out, INDENT, label, text, Style::error);
    }

    fn call(&self, out: &mut String, call: &Call) {
        let whose = match call.end {
            End::This => String::new(),
            End::Other => format!("({}) ", self.language.text(Key::OtherEnd)),
        };
        let returned = format!("→ {}", self.style.code(&call.returned));
        let code = |line: &str| self.style.code(line);
        if is_short(call) {
            line_at(
                out,
                CALL,
                &format!("{whose}{} {returned}", code(&call.code)),
            );
            return;
        }
        let mut lines = wrapped(&call.code, PAGE - CALL - width(&whose)).into_iter();
        let first = lines.next().unwrap_or_default();
        line_at(
            out,
            CALL,
            &format!("{}{}", self.style.faint(&whose), code(&first)),
        );
        for line in lines {
            line_at(out, CALL + 4, &code(&line));
        }
        self.fields(out, &call.given);
        line_at(out, CALL + 2, &returned);
        self.fields(out, &call.came);
    }

    fn fields(&self, out: &mut String, fields: &[Field]) {
        let names = fields.iter().map(|field| width(field.name)).max();
        let noted = fields.iter().filter(|field| field.note.is_some());
        let values = noted
            .map(|field| width(&field.value))
            .filter(|width| *width <= WIDEST_VALUE)
            .max();
        for field in fields {
            let name = padded(field.name, names.unwrap_or(0));
            let line = match field.note {
                None => format!("{name}  {}", self.style.code(&field.value)),
                Some(note) => {
                    let value = padded(&field.value, values.unwrap_or(0));
                    let text = self.note_text(note, &field.value);
                    format!(
                        "{name}  {}  {}",
                        self.style.code(&value),
                        self.style.faint(&text)
                    )
                }
            };
            line_at(out, FIELD, &line);
        }
    }

    fn note_text(&self, note: Note, value: &str) -> String {
        let key = topics::note(note);
        if note != Note::Timeout {
            return self.language.text(key).to_owned();
        }
        // 4.096 µs times two to the power of the code (InfiniBand specification 11.2.4.2).
        let code: u32 = value.parse().unwrap_or(0);
        let ms = 4.096e-3 * f64::from(code).exp2();
        self.language.filled(key, &[("ms", &format!("{ms:.0}"))])
    }

    fn states(&self, out: &mut String, end: End, states: &[QpState]) {
        let mut path: Vec<&str> = states.iter().map(|state| state.name()).collect();
        // QPs that take the same path are shown once.
        path.dedup();
        let asked = match end {
            End::This => "ibv_query_qp".to_owned(),
            End::Other => format!("({}) ibv_query_qp", self.language.text(Key::OtherEnd)),
        };
        let path = self.style.state(&path.join(" → "));
        let text = format!("{}: {path}", self.style.code(&asked));
        line_at(out, CALL, &text);
    }

    fn packets(&self, out: &mut String, recorded: &[RecordedPacket], qpn: u32) {
        for (line, is_heading) in packets::lines(recorded, qpn, self.language) {
            let line = match is_heading {
                true => self.style.heading(&line),
                false => self.style.code(&line),
            };
            line_at(out, CALL, &line);
        }
        if let Some(sent) = recorded.iter().find(|packet| packet.outwards) {
            let peer = sent.peer.to_string();
            let note = self.language.filled(Key::PacketNote, &[("peer", &peer)]);
            out.push('\n');
            self.paragraph(out, INDENT, "", &note);
        }
    }

    fn unseen(&self, out: &mut String, netdev: Option<&str>, software: bool) {
        let how = match software {
            true => Key::UnseenSoftware,
            false => Key::UnseenHardware,
        };
        self.paragraph(out, INDENT, "", self.language.text(how));
        out.push('\n');
        let netdev = netdev.unwrap_or("any");
        for command in [
            format!("sudo tcpdump -i {netdev} -nn -X udp port 4791"),
            format!("sudo tshark -i {netdev} -f 'udp port 4791' -O infiniband"),
        ] {
            line_at(out, CALL, &self.style.code(&command));
        }
    }

    fn labelled(
        &self,
        out: &mut String,
        indent: usize,
        label: &str,
        text: &str,
        mark: fn(Style, &str) -> String,
    ) {
        let mut plain = String::new();
        self.paragraph(&mut plain, indent, label, text);
        let marked = mark(self.style, label);
        out.push_str(&plain.replacen(label, &marked, 1));
    }

    fn paragraph(&self, out: &mut String, indent: usize, label: &str, text: &str) {
        // A wide colon includes its space.
        let space = if label.is_empty() || label.ends_with('：') {
            ""
        } else {
            " "
        };
        for line in wrapped(&format!("{label}{space}{text}"), PAGE - indent) {
            line_at(out, indent, &line);
        }
    }
}
