//! How often each position of the send rings was posted, as `drained` has it with `--verify`: packed, since it must fit
//! a frame with as many positions as a case may have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Of all QPs of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posts {
    /// Positions of each QP's ring.
    pub positions: u32,
    /// QP by QP, a count for each position; on the wire the base64 of 4 bytes each, little-endian.
    #[serde(serialize_with = "pack", deserialize_with = "unpack")]
    pub packed: Vec<u32>,
}

impl Posts {
    /// The counts of each QP.
    pub fn of_qps(&self) -> impl Iterator<Item = &[u32]> {
        self.packed.chunks(self.positions.max(1) as usize)
    }

    /// The most bytes that so many QPs with so many positions each take on the wire.
    pub fn most_bytes(qps: u32, positions: u32) -> u64 {
        const REST_BYTES: u64 = 64;
        let packed = u64::from(qps) * u64::from(positions) * size_of::<u32>() as u64;
        // Four characters for three bytes.
        packed.div_ceil(3) * 4 + REST_BYTES
    }
}

fn pack<S: Serializer>(counts: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let wrong = || D::Error::custom("not the base64 of numbers of 4 bytes");
    let text = String::deserialize(deserializer)?;
    let bytes = BASE64.decode(text).map_err(|_| wrong())?;
    let (counts, []) = bytes.as_chunks() else {
        return Err(wrong());
    };
    Ok(counts.iter().copied().map(u32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back_and_nothing_else_is() {
        let posts = Posts { positions: 2, packed: vec![0, 1, u32::MAX, 7] };
        let text = serde_json::to_string(&posts).unwrap();
        assert_eq!(text, r#"{"positions":2,"packed":"AAAAAAEAAAD/////BwAAAA"}"#);
        assert_eq!(serde_json::from_str::<Posts>(&text).unwrap(), posts);
        let of_qps: Vec<&[u32]> = posts.of_qps().collect();
        assert_eq!(of_qps, [[0, 1], [u32::MAX, 7]]);
        for wrong in ["\"AAAA\"", "\"!\"", "[1]"] {
            let text = format!(r#"{{"positions":1,"packed":{wrong}}}"#);
            assert!(serde_json::from_str::<Posts>(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_bytes_are_not_exceeded_and_almost_reached() {
        for (qps, positions) in [(1, 1), (1, 65_536), (100, 777), (3000, 16)] {
            let posts = Posts { positions, packed: vec![u32::MAX; (qps * positions) as usize] };
            let bytes = serde_json::to_string(&posts).unwrap().len() as u64;
            let most = Posts::most_bytes(qps, positions);
            assert!(bytes <= most && bytes + 64 >= most, "{bytes} of {most}");
        }
    }
}
