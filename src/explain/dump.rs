//! A hex dump of memory: sixteen bytes a line, in hex and as characters.

use super::columns::padded;

const ROW: usize = 16;
/// The most rows shown.
const ROWS: usize = 6;

/// The rows, each with its address.
pub(super) fn rows(address: u64, bytes: &[u8]) -> Vec<String> {
    let mut rows: Vec<String> = bytes
        .chunks(ROW)
        .take(ROWS)
        .enumerate()
        .map(|(index, row)| {
            let at = address.wrapping_add((index * ROW) as u64);
            format!("{at:#014x}  {}", row_text(row))
        })
        .collect();
    if bytes.len() > ROW * ROWS {
        rows.push(format!("…  {} bytes", bytes.len()));
    }
    rows
}

/// `48 65 6c …  |Hel…|`
pub(super) fn row_text(row: &[u8]) -> String {
    let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = row
        .iter()
        .map(|byte| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '·',
        })
        .collect();
    format!("{}  |{text}|", padded(&hex.join(" "), ROW * 3 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_addresses_hex_and_characters() {
        let shown = rows(0x7f00_0000_0000, "Hello, 你好! 12345".as_bytes());
        assert_eq!(
            shown,
            [
                "0x7f0000000000  48 65 6c 6c 6f 2c 20 e4 bd a0 e5 a5 bd 21 20 31  |Hello, ······! 1|",
                "0x7f0000000010  32 33 34 35                                      |2345|",
            ]
        );
        assert_eq!(rows(0, &[0; 1000]).len(), ROWS + 1);
    }
}
