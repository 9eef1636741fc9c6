//! Sizes in bytes as people write them: `64`, `4K`, `64KiB`, `1M`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, at most [`Size::MAX`]; 0 is allowed here and refused where it makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(u32);

/// Binary units, largest first: K is 1024, as in perftest and fio.
const UNITS: [(u32, &str, &str); 3] =
    [(1 << 30, "GiB", "G"), (1 << 20, "MiB", "M"), (1 << 10, "KiB", "K")];

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SizeError {
    #[error("`{0}` is not a size: write bytes, or 4K, 64KiB, 1M (K = 1024)")]
    Syntax(String),
    /// KB, MB and GB mean 1000 to some and 1024 to others.
    #[error("`{0}` is ambiguous: K, M, G (or KiB, MiB, GiB) count in 1024s, bytes have no unit")]
    Ambiguous(String),
    #[error("`{0}` is not an amount of memory")]
    NoMemory(String),
    #[error("`{0}` is more than one message can be: 2147483647 bytes (2 GiB - 1)")]
    TooLarge(String),
}

impl Size {
    /// The most that one message can be: 2 GiB - 1, as perftest's. Packets have room for one byte more (`DMALen` is 32 bits
    /// wide, and the specification ends at 2^31).
    pub const MAX: Size = Size((1 << 31) - 1);

    /// `bytes` as a size; `None` above [`Size::MAX`].
    pub fn from_bytes(bytes: u32) -> Option<Size> {
        (bytes <= Self::MAX.0).then_some(Size(bytes))
    }

    /// In bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// A number of bytes of memory, with the units of a [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize(pub u64);

impl FromStr for MemorySize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let bytes = bytes(text)?;
        bytes
            .filter(|bytes| *bytes > 0)
            .map(MemorySize)
            .ok_or_else(|| SizeError::NoMemory(text.to_owned()))
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        bytes(text)?
            .and_then(|bytes| u32::try_from(bytes).ok())
            .and_then(Size::from_bytes)
            .ok_or_else(|| SizeError::TooLarge(text.to_owned()))
    }
}

/// The bytes that a text says; `None` beyond 64 bits.
pub(crate) fn bytes(text: &str) -> Result<Option<u64>, SizeError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit_bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "mb" | "gb" => return Err(SizeError::Ambiguous(text.to_owned())),
        unit => UNITS
            .iter()
            .find(|(_, long, short)| {
                unit.eq_ignore_ascii_case(long) || unit.eq_ignore_ascii_case(short)
            })
            .map(|(bytes, ..)| u64::from(*bytes))
            .ok_or_else(|| SizeError::Syntax(text.to_owned()))?,
    };
    if digits.is_empty() {
        return Err(SizeError::Syntax(text.to_owned()));
    }
    let count = digits.parse::<u64>().ok();
    Ok(count.and_then(|count| count.checked_mul(unit_bytes)))
}

impl fmt::Display for Size {
    /// As [`MemorySize`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        MemorySize(self.0.into()).fmt(f)
    }
}

impl fmt::Display for MemorySize {
    /// The exact size in the largest unit that divides it: `64KiB`, `1500B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = UNITS
            .iter()
            .map(|(unit_bytes, name, _)| (u64::from(*unit_bytes), name))
            .find(|(unit_bytes, _)| self.0 != 0 && self.0.is_multiple_of(*unit_bytes))
            .map_or_else(
                || format!("{}B", self.0),
                |(unit_bytes, name)| format!("{}{name}", self.0 / unit_bytes),
            );
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_is_read() {
        for (text, bytes) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("4K", 4096),
            ("4k", 4096),
            ("64KiB", 65536),
            ("64kib", 65536),
            ("1M", 1 << 20),
            ("1G", 1 << 30),
            ("2147483647", (1 << 31) - 1),
        ] {
            assert_eq!(text.parse::<Size>().map(Size::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "+4", "4 K", "1.5K", "4X", "0x10", "٣"] {
            let read = text.parse::<Size>();
            assert!(matches!(read, Err(SizeError::Syntax(_))), "{text}");
        }
        let read = "4KB".parse::<Size>();
        assert!(matches!(read, Err(SizeError::Ambiguous(_))));
        for text in "2G 2147483648 18446744073709551616 18446744073709551615G".split(' ') {
            let read = text.parse::<Size>();
            assert!(matches!(read, Err(SizeError::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in
            [(0, "0B"), (64, "64B"), (1500, "1500B"), (65536, "64KiB"), (1 << 30, "1GiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_printed_size_is_read_back(bytes in 0..=Size::MAX.0, shift in 0u32..20) {
            let size = Size(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse::<Size>(), Ok(size));
        }
    }
}
