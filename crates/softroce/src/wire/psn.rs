//! Packet sequence numbers: 24 bits that wrap (InfiniBand specification 9.7.2).

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    const MASK: u32 = 0x00ff_ffff;

    pub const ZERO: Psn = Psn(0);

    /// Adding this goes one back.
    pub const STEP_BACK: u32 = Psn::MASK;

    /// The low 24 bits of `value`.
    pub fn new(value: u32) -> Psn {
        Psn(value & Psn::MASK)
    }

    /// As a number below 2^24.
    pub fn value(self) -> u32 {
        self.0
    }

    /// The PSN `count` packets later.
    #[must_use]
    pub fn plus(self, count: u32) -> Psn {
        Psn::new(self.0.wrapping_add(count))
    }

    /// Packets from `earlier` to this one, negative if this one is before it: the shorter way round, from -2^23 to
    /// 2^23 - 1.
    pub fn distance_from(self, earlier: Psn) -> i32 {
        // The shift makes bit 23 the sign.
        ((self.0.wrapping_sub(earlier.0) << 8).cast_signed()) >> 8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_circle_closes() {
        let last = Psn::new(0x00ff_ffff);
        assert_eq!(last.plus(1), Psn::new(0));
        assert_eq!(Psn::new(0).distance_from(last), 1);
        assert_eq!(Psn::new(0x0080_0000).distance_from(Psn::new(0)), -(1 << 23));
    }

    proptest! {
        #[test]
        fn distances_undo_steps(start: u32, steps in 0..1u32 << 23) {
            let start = Psn::new(start);
            let end = start.plus(steps);
            prop_assert_eq!(end.distance_from(start), steps.cast_signed());
            prop_assert_eq!(start.distance_from(end), -steps.cast_signed());
        }
    }
}
