//! Bounds on what a JSON text may become in memory, found before it is parsed: an object of 7 bytes can take a hundred
//! times as much.

/// Objects and arrays within each other; messages of the protocol have 9.
const MAX_DEPTH: u64 = 24;

/// Objects and arrays: some, and one for so many bytes. The smallest that comes in numbers, a QP in `endpoints`, has
/// 50.
const FREE_CONTAINERS: u64 = 1024;
const BYTES_PER_CONTAINER: u64 = 40;

/// Elements: a number for each of the most QPs that there are, and one for so many bytes.
const FREE_ELEMENTS: u64 = 128 << 10;
const BYTES_PER_ELEMENT: u64 = 8;

/// What a text has more of than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) what: &'static str,
    pub(crate) limit: u64,
}

/// Checks a text, which need not be JSON.
pub(crate) fn check(text: &[u8]) -> Result<(), Excess> {
    let len = text.len() as u64;
    let most_containers = FREE_CONTAINERS + len / BYTES_PER_CONTAINER;
    let most_elements = FREE_ELEMENTS + len / BYTES_PER_ELEMENT;
    let (mut depth, mut containers, mut elements) = (0_u64, 0, 0);
    let mut bytes = text.iter();
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                containers += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => elements += 1,
            _ => {}
        }
        for (what, count, limit) in [
            ("levels of nesting", depth, MAX_DEPTH),
            ("objects and arrays", containers, most_containers),
            ("elements", elements, most_elements),
        ] {
            if count > limit {
                return Err(Excess { what, limit });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    fn excess(piece: &str) -> Option<&'static str> {
        let text = format!("[{}0]", piece.repeat(LEN / piece.len()));
        check(text.as_bytes()).err().map(|excess| excess.what)
    }

    #[test]
    fn what_takes_far_more_than_its_bytes_is_refused() {
        assert_eq!(excess("0,"), Some("elements"));
        assert_eq!(excess(r#"{"":0},"#), Some("objects and arrays"));
        assert_eq!(excess("[],"), Some("objects and arrays"));
        assert_eq!(excess("["), Some("levels of nesting"));
        assert_eq!(excess(r#"{"a":"#), Some("levels of nesting"));
    }

    #[test]
    fn what_the_protocol_sends_is_not() {
        let qp = r#"{"qpn":17,"psn":1,"address":0,"rkey":0,"length":0},"#;
        assert_eq!(excess(qp), None);
        assert_eq!(excess("1234567,"), None);
    }

    #[test]
    fn text_in_strings_does_not_count() {
        assert_eq!(excess(r#""{[,\"{[,{[,{[,{[,{[,{[,{[,{[,{[,","#), None);
        assert_eq!(check(br#"{"a":"\\","b":[]}"#), Ok(()));
    }
}
