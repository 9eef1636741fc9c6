//! The language of packet scripts: their lines, tables, times and numbers. What a line does is the player's.

use std::fmt::Display;

/// What is wrong with a line, and its number.
pub type Failure = (usize, String);

/// A script, or what is between two of its lines `---`, with one row of each of its tables.
pub struct Case {
    /// The values of its rows.
    pub row: String,
    pub lines: Vec<Line>,
}

#[derive(Clone, Default)]
pub struct Line {
    pub number: usize,
    /// With the values of its rows.
    pub text: String,
    /// How long after the line before; none for whenever it happens.
    pub after_ns: Option<u64>,
    /// 0 for device `a`, 1 for `b`, 2 for `c`.
    pub device: usize,
    pub verb: String,
    pub words: Vec<String>,
    pub fields: Fields,
    /// Which of its repetitions this is.
    pub index: usize,
}

/// Names and values; numbers are decimal.
#[derive(Clone, Default)]
pub struct Fields(pub Vec<(String, String)>);

impl Fields {
    pub fn push(&mut self, name: &str, value: impl Display + Copy) {
        self.0.push((name.into(), value.to_string()));
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    pub fn number(&mut self, name: &str, default: i64) -> Result<i64, String> {
        self.take(name).map_or(Ok(default), |value| number(&value))
    }

    /// After all have been taken that mean something.
    pub fn finish(&self) -> Result<(), String> {
        match self.0.first() {
            Some((name, _)) => Err(format!("`{name}=` means nothing here.")),
            None => Ok(()),
        }
    }
}

/// All cases of a script.
pub fn cases(script: &str) -> Result<Vec<Case>, Failure> {
    if !script.starts_with("# ") {
        return Err((1, "A script begins with `# `, the behaviour and its specification.".into()));
    }
    let (mut cases, mut body) = (Vec::new(), Vec::new());
    let (mut before, mut rows, mut names) = (Vec::new(), vec![Vec::new()], Vec::new());
    for (number, text) in (1..).zip(script.lines().chain(["---"])) {
        // A `#` within a word is none of a comment: `tx.lose=write#2`.
        let text = text.split(" #").next().unwrap_or_default().trim();
        if text == "---" {
            if rows.is_empty() {
                return Err((number, "The `each` above has no rows.".into()));
            }
            for row in &rows {
                cases.push(case(row, &body)?);
            }
            body.clear();
            rows = vec![Vec::new()];
        } else if let Some(columns) = text.strip_prefix("each ") {
            names = columns.split_whitespace().collect();
            before = std::mem::take(&mut rows);
        } else if let Some(values) = text.strip_prefix('|') {
            let values: Vec<&str> = values.split_whitespace().collect();
            if values.len() != names.len() {
                return Err((number, "A row has a value for each name of `each`.".into()));
            }
            let row = names.iter().copied().zip(values);
            rows.extend(before.iter().map(|row_before: &Vec<(&str, &str)>| {
                row_before.iter().copied().chain(row.clone()).collect()
            }));
        } else if !text.is_empty() && !text.starts_with('#') {
            body.push((number, text));
        }
    }
    Ok(cases)
}

fn case(row: &[(&str, &str)], body: &[(usize, &str)]) -> Result<Case, Failure> {
    let mut lines = Vec::new();
    for &(number, text) in body {
        let mut filled = text.to_owned();
        for (name, value) in row {
            filled = filled.replace(&format!("${name}"), value);
        }
        for part in filled.split(" ; ") {
            let more =
                parse(part.trim()).and_then(repeated).map_err(|problem| (number, problem))?;
            lines.extend(more.into_iter().map(|line| Line { number, ..line }));
        }
    }
    let values: Vec<String> = row.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(Case { row: values.join(" "), lines })
}

fn parse(text: &str) -> Result<Line, String> {
    if text.contains('$') {
        return Err(format!("No `each` has this name: {text}"));
    }
    let mut words = text.split_whitespace().peekable();
    let after_ns = match words.next_if(|word| word.starts_with('+')) {
        None => Some(0),
        Some("+?") => None,
        Some(time) => Some(time_ns(time)?),
    };
    let device = words.next_if(|word| ["a:", "b:", "c:"].contains(word)).unwrap_or("a:");
    let mut line = Line {
        text: text.into(),
        after_ns,
        device: usize::from(device.as_bytes()[0] - b'a'),
        verb: words.next().ok_or("After the time comes what happens.")?.into(),
        ..Line::default()
    };
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => match number(value) {
                Ok(value) => line.fields.push(name, value),
                Err(_) => line.fields.push(name, value),
            },
            None => line.words.push(word.into()),
        }
    }
    Ok(line)
}

/// Once for each PSN of `psn=3..5`, at one instant; or as often as `times=` says, each time after the line's time.
fn repeated(mut line: Line) -> Result<Vec<Line>, String> {
    let times = line.fields.number("times", 1)?;
    let Some((first, last)) = line.fields.get("psn").and_then(|psn| psn.split_once("..")) else {
        return Ok(vec![line; times as usize]);
    };
    let psns = number(first)?..=number(last)?;
    line.fields.take("psn");
    let numbered = |(index, psn)| {
        let mut line = Line { index, ..line.clone() };
        if index > 0 {
            line.after_ns = line.after_ns.and(Some(0));
        }
        line.fields.push("psn", psn);
        line
    };
    Ok(psns.enumerate().map(numbered).collect())
}

/// Of `+1.28ms`.
fn time_ns(text: &str) -> Result<u64, String> {
    let value = text.trim_end_matches(char::is_alphabetic);
    let scale = match &text[value.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if value == "+0" => 0.0,
        _ => f64::NAN,
    };
    let ns = value.parse::<f64>().unwrap_or(f64::NAN) * scale;
    if ns.is_nan() {
        return Err(format!("{text} is no time. Write +0, +1.28ms or +?."));
    }
    Ok(ns.round() as u64)
}

/// Of `12`, `-1`, `0x1f`, `64k` (65536) or `16M`.
pub fn number(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(['k', 'M']);
    let scale = match &text[digits.len()..] {
        "" => 1,
        "k" => 1 << 10,
        _ => 1 << 20,
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map(|value| value * scale).map_err(|_| format!("{text} is no number."))
}

/// Bytes of `01*8+ff`.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    for part in text.split('+') {
        let (byte, count) = part.split_once('*').unwrap_or((part, "1"));
        let byte = u8::from_str_radix(byte, 16).map_err(|_| format!("{part} is no byte."))?;
        data.resize(data.len() + number(count)? as usize, byte);
    }
    Ok(data)
}
