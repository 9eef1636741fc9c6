//! Writes a call as C code: its structs before it, what it returned, and its structs after it.

use crate::lesson::{Call, End, Field, Note};

use super::columns::{padded, width, wrapped};
use super::layout::{CALL, is_short, line_at};
use super::presentation::Presentation;
use super::text::Key;
use super::topics;

const FIELD: usize = 10;
/// The remark column moves for values up to this width.
const WIDEST_VALUE: usize = 28;
/// Fewest columns of a remark.
const NARROWEST_NOTE: usize = 16;

/// Adds the lines of a call.
pub(super) fn write(out: &mut String, call: &Call, presentation: &Presentation) {
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
    let key = topics::note(note);
    if note != Note::Timeout {
        return presentation.language.text(key).to_owned();
    }
    // 4.096 µs times two to the power of the code (InfiniBand specification 11.2.4.2).
    let code: u32 = value.parse().unwrap_or(0);
    let ms = 4.096e-3 * f64::from(code).exp2();
    presentation.language.filled(key, &[("ms", &format!("{ms:.0}"))])
}

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::super::text::Language;
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
                write(&mut out, &call, &presentation);
                let widest = out.lines().map(width).max();
                assert!(widest <= Some(columns), "{widest:?} of {columns}:\n{out}");
            }
        }
    }
}
