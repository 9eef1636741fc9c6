//! A hex dump of memory: sixteen bytes a line, or eight on a narrow terminal, in hex and as characters.

use super::columns::padded;

/// The most bytes shown.
const MOST_BYTES: usize = 96;
/// Columns of sixteen bytes in hex and as characters.
const SIXTEEN: usize = 67;
/// Columns of an address before them.
pub(super) const ADDRESS: usize = 16;

/// How many bytes a row of at most so many columns has.
pub(super) fn bytes_a_row(columns: usize) -> usize {
    if columns < SIXTEEN { 8 } else { 16 }
}

/// The rows, each with its address.
pub(super) fn rows(address: u64, bytes: &[u8], bytes_a_row: usize) -> Vec<String> {
    let shown = &bytes[..bytes.len().min(MOST_BYTES)];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_addresses_hex_and_characters() {
        let text = "Hello, 你好! 12345".as_bytes();
        let shown = rows(0x7f00_0000_0000, text, bytes_a_row(67)).join("\n");
        let expected = "0x7f0000000000  48 65 6c 6c 6f 2c 20 e4 bd a0 e5 a5 bd 21 20 31  |Hello, ······! 1|\n\
                        0x7f0000000010  32 33 34 35                                      |2345|";
        assert_eq!(shown, expected);
        for (columns, lines) in [(SIXTEEN, 7), (SIXTEEN - 1, 13)] {
            let shown = rows(0, &[b'x'; 1000], bytes_a_row(columns));
            assert_eq!(shown.len(), lines);
            assert!(shown.iter().all(|line| line.len() <= ADDRESS + columns));
        }
    }
}
