//! Numbers at fixed places of a MAD, all big-endian; fields narrower than a byte are counted from its highest bit.

/// Bytes of every MAD.
pub const MAD_BYTES: usize = 256;

/// Bytes of the MAD header, after which the message begins.
const HEADER_BYTES: usize = 24;

/// Where a field of the message lies in the MAD.
pub(super) const fn at(place: usize) -> usize {
    HEADER_BYTES + place
}

/// The bytes of a MAD, with access by place. A place outside reads as 0 and is not written.
pub(super) struct Fields(pub(super) [u8; MAD_BYTES]);

impl Fields {
    pub(super) fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let found = self.0.get(at..).and_then(|rest| rest.first_chunk());
        found.copied().unwrap_or([0; N])
    }

    pub(super) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = bytes;
        }
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        u8::from_be_bytes(self.bytes(at))
    }

    pub(super) fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.bytes(at))
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes(at))
    }

    /// The first three bytes of a word.
    pub(super) fn three(&self, at: usize) -> u32 {
        self.word(at) >> 8
    }

    pub(super) fn long(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.bytes(at))
    }

    /// `width` bits of a byte, after the `first` ones.
    pub(super) fn bits(&self, at: usize, first: u32, width: u32) -> u8 {
        (u32::from(self.byte(at)) >> (8 - first - width)) as u8 & mask(width)
    }

    pub(super) fn put_three(&mut self, at: usize, value: u32) {
        let [_, high, middle, low] = value.to_be_bytes();
        self.put(at, [high, middle, low]);
    }

    pub(super) fn put_bits(&mut self, at: usize, first: u32, width: u32, value: u8) {
        let shift = 8 - first - width;
        let kept = self.byte(at) & !(mask(width) << shift);
        self.put(at, [kept | (value & mask(width)) << shift]);
    }
}

/// Private data in the field of a message: the rest is 0, and what has no room is left out.
pub fn padded<const BYTES: usize>(private_data: &[u8]) -> [u8; BYTES] {
    let mut field = [0; BYTES];
    for (to, from) in field.iter_mut().zip(private_data) {
        *to = *from;
    }
    field
}

fn mask(width: u32) -> u8 {
    ((1_u32 << width) - 1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_bytes_leave_the_fourth() {
        let mut fields = Fields([0xee; MAD_BYTES]);
        fields.put_three(8, 0x0012_3456);
        assert_eq!((fields.three(8), fields.byte(11)), (0x0012_3456, 0xee));
        assert_eq!(fields.word(MAD_BYTES - 1), 0, "outside");
    }
}
