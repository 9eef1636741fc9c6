//! Tables by numbers that the device itself gives: what it looks up several times a WR, so without a hash that resists
//! chosen keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by QP numbers, keys or pointers.
pub(super) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Multiplied>>;

/// Multiplies the number, whose high bits then depend on all of it.
#[derive(Default)]
pub(super) struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
