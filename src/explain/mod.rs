//! Writes the facts of a lesson as text in one of two languages. It makes no verbs calls.
//!
//! The texts are in `text/`: each has a [`text::Key`], and each language has all of them.

mod parts;
pub mod text;

use node::lesson::{Begin, End, Event, Outcome, Part, Step, Topic};
use protocol::lesson::Mistake;
use results::text::printable;
use settings::Op;
use verbs::{QpState, RecordedPacket};

use parts::{CALL, INDENT, duration, line_at, padded, stands_apart, width, wrapped};
pub use parts::{PAGE, Presentation, Style};
pub use text::Language;
use text::{Key, by_access};

/// Writes a lesson as text, event by event, with a verdict at its end.
pub struct LessonWriter {
    language: Language,
    style: Style,
    presentation: Presentation,
    op: Op,
    mistake: Option<Mistake>,
    steps: usize,
    /// Number of the last step written.
    last_step: usize,
    /// Number of the step that showed the arrays.
    exchange: usize,
    failed: bool,
}

impl LessonWriter {
    /// A writer for a lesson about `op`.
    pub fn new(presentation: Presentation, op: Op, mistake: Option<Mistake>) -> LessonWriter {
        LessonWriter {
            language: presentation.language,
            style: presentation.style,
            presentation,
            op,
            mistake,
            steps: 0,
            last_step: 0,
            exchange: 0,
            failed: false,
        }
    }

    /// The text of an event.
    pub fn text(&mut self, event: &Event) -> String {
        match event {
            Event::Begin(begin) => self.begin(begin),
            Event::Step(step) => self.step(step),
        }
    }

    /// The text at the end.
    pub fn end(&mut self, verdict: Verdict) -> String {
        let mut out = self.left_out(self.steps);
        if let Some(mistake) = self.mistake {
            let title = self.language.text(Key::WhyTitle);
            out += &format!("{}\n", self.style.heading(title));
            let exchange = self.exchange.to_string();
            for (label, text) in text::explanation(mistake) {
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
        let text = self.language.filled(verdict.key(), &[("name", name), ("mistakes", &mistakes)]);
        for line in wrapped(&text, self.presentation.columns) {
            let line =
                if verdict.is_good() { self.style.state(&line) } else { self.style.error(&line) };
            out += &line;
            out.push('\n');
        }
        out
    }

    fn begin(&self, begin: &Begin) -> String {
        let head = by_access(begin.op, Key::HeadSend, Key::HeadWrite, Key::HeadRead);
        let mut titles =
            vec![self.language.filled(head, &[("n", &begin.length_bytes.to_string())])];
        let broken = begin.mistake.map(|mistake| [("name", mistake.name())]);
        titles.extend(broken.map(|name| self.language.filled(Key::HeadBroken, &name)));
        let this = if begin.embedded { Key::HeadThisEmbedded } else { Key::HeadThis };
        let port = begin.port.to_string();
        let this = self.language.filled(this, &[("device", &begin.device), ("port", &port)]);
        let other = match &begin.server {
            None => self.language.filled(Key::HeadLocal, &[]),
            Some(server) => self.language.filled(Key::HeadRemote, &[("server", server)]),
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
        if !self.is_shown(step) {
            return String::new();
        }
        let mut out = self.left_out(self.steps - 1);
        self.last_step = self.steps;
        let texts = text::texts(step.topic, self.op, self.failed);
        let unseen = matches!(step.parts.first(), Some(Part::Unseen { .. }));
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
        let careful = texts.careful.filter(|_| self.is_whole() || is_mistaken(step));
        if let Some(careful) = careful {
            out.push('\n');
            let label = self.language.text(Key::Careful);
            self.labelled(&mut out, INDENT, label, self.language.text(careful), Style::careful);
        }
        out.push('\n');
        out
    }

    /// Whether to write every step, also those that are the same without the mistake.
    fn is_whole(&self) -> bool {
        self.mistake.is_none() || self.presentation.has_all_steps
    }

    fn is_shown(&self, step: &Step) -> bool {
        self.is_whole()
            || is_mistaken(step)
            || self.mistake.is_some_and(|mistake| text::concerns(mistake, step.topic))
    }

    /// A line for the steps up to `last` that were left out; empty if there are none.
    fn left_out(&mut self, last: usize) -> String {
        let first = self.last_step + 1;
        let numbers = match last.checked_sub(first) {
            None => return String::new(),
            Some(0) => format!("{first:2}"),
            Some(_) => format!("{first:2}–{last}"),
        };
        self.last_step = last;
        let text = self.language.text(Key::LeftOut);
        format!("{}\n\n", self.style.faint(&format!("{numbers}  {text}")))
    }

    fn part(&mut self, out: &mut String, part: &Part) {
        match part {
            Part::Call(call) => parts::write_call(out, call, &self.presentation),
            Part::States(end, states) => self.states(out, *end, states),
            Part::Arrays(array) => {
                for line in parts::arrays(array, self.language) {
                    line_at(out, CALL, &line);
                }
            }
            Part::Memory { end, after, address, bytes, message_bytes } => {
                let label = match (end, after) {
                    (End::This, false) => Key::MemoryThis,
                    (End::This, true) => Key::MemoryThisAfter,
                    (End::Other, false) => Key::MemoryOtherBefore,
                    (End::Other, true) => Key::MemoryOtherAfter,
                };
                line_at(out, CALL, self.language.text(label));
                let room =
                    self.presentation.columns.saturating_sub(CALL + 2 + parts::ADDRESS_COLUMNS);
                let bytes_a_row = parts::bytes_a_row(room);
                for row in parts::memory(*address, bytes, bytes_a_row) {
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
                    let text = self.language.text(text::on_purpose(mistake));
                    let label = self.language.text(Key::OnPurpose);
                    self.labelled(out, INDENT, label, text, Style::error);
                }
            }
            Part::Failed(status) => {
                let meaning = self.language.text(text::meaning(*status));
                let name = status.to_string();
                let values = [("status", name.as_str()), ("meaning", meaning)];
                let text = self.language.filled(Key::Status, &values);
                self.error(out, &text);
            }
            Part::Silence(seconds) => {
                let text = self.language.filled(Key::Silence, &[("s", &seconds.to_string())]);
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

    fn states(&self, out: &mut String, end: End, states: &[QpState]) {
        let mut path: Vec<&str> = states.iter().map(|state| state.name()).collect();
        // QPs that take the same path are shown once.
        path.dedup();
        let call = match end {
            End::This => "ibv_query_qp".to_owned(),
            End::Other => format!("({}) ibv_query_qp", self.language.text(Key::OtherEnd)),
        };
        let path = self.style.state(&path.join(" → "));
        let text = format!("{}: {path}", self.style.code(&call));
        line_at(out, CALL, &text);
    }

    fn packets(&self, out: &mut String, recorded: &[RecordedPacket], qpn: u32) {
        let columns = self.presentation.columns.saturating_sub(CALL);
        for (line, is_heading) in parts::packets(recorded, qpn, self.language, columns) {
            let line = if is_heading { self.style.heading(&line) } else { self.style.code(&line) };
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
        let how = if software { Key::UnseenSoftware } else { Key::UnseenHardware };
        self.paragraph(out, INDENT, "", self.language.text(how));
        out.push('\n');
        let interface = netdev.unwrap_or("any");
        for command in [
            format!("sudo tcpdump -i {interface} -nn -X udp port 4791"),
            format!("sudo tshark -i {interface} -f 'udp port 4791' -O infiniband"),
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
        let space = if label.is_empty() || label.ends_with('：') { "" } else { " " };
        for line in wrapped(
            &format!("{label}{space}{text}"),
            self.presentation.columns.saturating_sub(indent),
        ) {
            line_at(out, indent, &line);
        }
    }
}

/// Whether the mistake is made in this step, or an error is shown in it.
fn is_mistaken(step: &Step) -> bool {
    step.parts.iter().any(|part| {
        matches!(
            part,
            Part::OnPurpose | Part::Failed(_) | Part::Silence(_) | Part::Error(_) | Part::Theirs(_)
        )
    })
}

/// How a lesson ended, compared with what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No mistake: the message arrived.
    Arrived,
    /// No mistake: the message did not arrive.
    NotArrived,
    /// Mistake: the expected error came.
    Promised,
    NotPromised,
    NoError,
}

impl Verdict {
    /// The verdict on a lesson's outcome.
    pub fn new(mistake: Option<Mistake>, outcome: &Outcome) -> Verdict {
        match (mistake, &outcome.error) {
            (None, None) if outcome.arrived => Verdict::Arrived,
            (None, _) => Verdict::NotArrived,
            (Some(_), None) => Verdict::NoError,
            (Some(mistake), Some(error)) if error.is_caused_by(mistake) => Verdict::Promised,
            (Some(_), Some(_)) => Verdict::NotPromised,
        }
    }

    pub fn is_good(self) -> bool {
        matches!(self, Verdict::Arrived | Verdict::Promised)
    }

    fn key(self) -> Key {
        match self {
            Verdict::Arrived => Key::Arrived,
            Verdict::NotArrived => Key::NotArrived,
            Verdict::Promised => Key::Promised,
            Verdict::NotPromised => Key::NotPromised,
            Verdict::NoError => Key::NoError,
        }
    }
}

#[cfg(test)]
mod tests {
    use node::lesson::ObservedError;
    use verbs::WcStatus;

    use super::*;

    #[test]
    fn a_broken_lesson_is_good_when_the_promised_error_comes() {
        let ended = |status: Option<u32>, arrived| Outcome {
            error: status.map(|code| ObservedError::Completion(WcStatus(code))),
            arrived,
        };
        let rkey = Some(Mistake::Rkey);
        for (mistake, outcome, verdict) in [
            (None, ended(None, true), Verdict::Arrived),
            (None, ended(None, false), Verdict::NotArrived),
            (None, ended(Some(12), false), Verdict::NotArrived),
            (rkey, ended(Some(10), false), Verdict::Promised),
            (rkey, ended(Some(12), false), Verdict::NotPromised),
            (rkey, ended(None, true), Verdict::NoError),
        ] {
            assert_eq!(Verdict::new(mistake, &outcome), verdict);
        }
        assert!(Verdict::Promised.is_good() && !Verdict::NoError.is_good());
    }
}
