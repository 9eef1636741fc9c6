//! Numbers at fixed places of a message, all big-endian; fields narrower than a byte are counted from its highest bit.

/// Goes over the fields of a message, and reads or writes each: so its place is said once. Of a place outside nothing is
/// read or written.
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Otherwise it reads.
    pub(super) writes: bool,
}

impl Fields<'_> {
    pub(super) fn bytes<const N: usize>(&mut self, at: usize, value: &mut [u8; N]) {
        let field = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        match (field, self.writes) {
            (Some(field), true) => *field = *value,
            (Some(field), false) => *value = *field,
            (None, _) => {}
        }
    }

    pub(super) fn byte(&mut self, at: usize, value: &mut u8) {
        self.bytes(at, std::array::from_mut(value));
    }

    pub(super) fn half(&mut self, at: usize, value: &mut u16) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u16::from_be_bytes(bytes);
    }

    /// The low three bytes of a number.
    pub(super) fn three(&mut self, at: usize, value: &mut u32) {
        let [_, mut bytes @ ..] = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        let [high, middle, low] = bytes;
        *value = u32::from_be_bytes([0, high, middle, low]);
    }

    pub(super) fn word(&mut self, at: usize, value: &mut u32) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u32::from_be_bytes(bytes);
    }

    pub(super) fn long(&mut self, at: usize, value: &mut u64) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u64::from_be_bytes(bytes);
    }

    /// `width` bits of a byte, after the `first` ones.
    pub(super) fn bits(&mut self, at: usize, first: u32, width: u32, value: &mut u8) {
        let (mask, shift) = ((1 << width) - 1, 8 - first - width);
        match (self.bytes.get_mut(at), self.writes) {
            (Some(byte), true) => *byte = *byte & !(mask << shift) | (*value & mask) << shift,
            (Some(byte), false) => *value = *byte >> shift & mask,
            (None, _) => {}
        }
    }

    pub(super) fn flag(&mut self, at: usize, bit: u32, value: &mut bool) {
        let mut code = u8::from(*value);
        self.bits(at, bit, 1, &mut code);
        *value = code == 1;
    }

    /// A program's data in a field of so many bytes: the rest of it is 0, and what has no room is left out.
    pub(super) fn data(&mut self, at: usize, bytes: usize, value: &mut Vec<u8>) {
        let field = self.bytes.iter_mut().skip(at).take(bytes);
        if self.writes {
            field.zip(value).for_each(|(to, from)| *to = *from);
        } else {
            *value = field.map(|byte| *byte).collect();
        }
    }
}
