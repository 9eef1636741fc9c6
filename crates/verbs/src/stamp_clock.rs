//! The clock by which a device stamps completions (`ibv_query_rt_values_ex`). It must not know the CPU's clock.

use std::sync::Arc;

use super::{Context, Operation, VerbsError, ffi};

/// The clock of a device's stamps.
#[derive(Clone)]
pub struct StampClock {
    context: Arc<Context>,
    /// The bits that count.
    mask: u64,
    khz: u64,
}

impl StampClock {
    /// That of a device; `None` of one that has none, or does not say its frequency.
    pub fn of(context: &Arc<Context>) -> Option<StampClock> {
        // SAFETY: the context is open.
        let attr = unsafe { ffi::query_device_ex(context.raw()) }?;
        let (mask, khz) = (attr.completion_timestamp_mask, attr.hca_core_clock);
        (mask != 0 && khz != 0).then(|| StampClock { context: Arc::clone(context), mask, khz })
    }

    /// What it says, in ticks as those of stamps.
    pub fn read(&self) -> Result<u64, VerbsError> {
        // SAFETY: the context is open.
        let read = unsafe { ffi::query_clock(self.context.raw()) };
        read.map_err(|code| VerbsError::returned(Operation::QueryClock, self.context.name(), code))
    }

    /// Ticks in a millisecond.
    pub fn khz(&self) -> u64 {
        self.khz
    }

    /// Ticks from one reading to another, at most half of what the clock counts before it begins again; negative where
    /// the second is the earlier.
    #[inline]
    pub fn ticks_between(&self, one: u64, other: u64) -> i64 {
        let unused_bits = self.mask.leading_zeros();
        (other.wrapping_sub(one) << unused_bits).cast_signed() >> unused_bits
    }
}

#[cfg(test)]
mod tests {
    use crate::{EmbeddedDevice, PortRequest, VerbsLibrary, embedded_devices, select_or_embedded};

    use super::*;

    fn clock(mask: u64) -> StampClock {
        let devices: Vec<EmbeddedDevice> = embedded_devices().unwrap();
        let request =
            PortRequest { device: Some(devices[0].name.clone()), ..PortRequest::default() };
        let port = select_or_embedded(VerbsLibrary::system(), &request, None).unwrap();
        let clock = StampClock::of(&port.context).unwrap();
        StampClock { mask, ..clock }
    }

    #[test]
    fn ticks_go_both_ways_and_over_the_end_of_the_clock() {
        let whole = clock(u64::MAX);
        assert_eq!(whole.ticks_between(5, 12), 7);
        assert_eq!(whole.ticks_between(12, 5), -7);
        assert_eq!(whole.ticks_between(u64::MAX, 1), 2);
        let short = clock((1 << 48) - 1);
        assert_eq!(short.ticks_between((1 << 48) - 3, 4), 7);
        assert_eq!(short.ticks_between(4, (1 << 48) - 3), -7);
        assert!(whole.read().unwrap() <= whole.read().unwrap());
    }
}
