//! Limits of a transfer's settings, which both ends check.

use std::ops::RangeInclusive;

use protocol::failure::RunFailure;
use protocol::file_message::ChannelSettings;
use settings::Mtu;

/// The most QPs of a transfer.
pub const MAX_QPS: u32 = 4096;
/// The most outstanding chunks of a QP.
pub const MAX_WINDOW: u32 = 1024;
/// Smallest and largest chunk.
pub const CHUNK_BYTES: RangeInclusive<u32> = 4096..=(64 << 20);
/// The most memory that an end registers.
pub const MAX_MEMORY_BYTES: u64 = 4 << 30;

/// Checks the settings of a transfer against their limits.
pub(super) fn check(settings: &ChannelSettings) -> Result<(), RunFailure> {
    let ChannelSettings { qps, window, chunk_bytes, timeout, retry_cnt, .. } = *settings;
    if qps == 0 || qps > MAX_QPS {
        return refuse(format!("{qps} QPs are too few or too many"), "give --qps 1 to 4096");
    }
    if window == 0 || window > MAX_WINDOW {
        return refuse(format!("a window of {window} is out of range"), "give --window 1 to 1024");
    }
    if !CHUNK_BYTES.contains(&chunk_bytes) || chunk_bytes % 4096 != 0 {
        let text = format!("chunks of {chunk_bytes} bytes are not possible");
        return refuse(text, "give --chunk a multiple of 4K, up to 64M");
    }
    let memory = memory_bytes(settings);
    if memory > MAX_MEMORY_BYTES {
        let text =
            format!("QPs x window x chunk take {memory} bytes of memory at each end, too many");
        return refuse(text, "lower --qps, --window or --chunk: the limit is 4 GiB");
    }
    if timeout > 31 || retry_cnt > 7 {
        let text = format!("ACK timeout {timeout} or retry count {retry_cnt} is out of range");
        return refuse(text, "give --timeout 0 to 31, --retry-cnt 0 to 7");
    }
    if let Some(mtu) = settings.mtu_bytes
        && Mtu::try_from(mtu).is_err()
    {
        let hint = "give --mtu 256, 512, 1024, 2048 or 4096";
        return refuse(format!("an MTU of {mtu} is not possible"), hint);
    }
    Ok(())
}

/// Memory that each end registers, in bytes.
pub fn memory_bytes(settings: &ChannelSettings) -> u64 {
    qp_bytes(settings) * u64::from(settings.qps)
}

/// Memory of one QP, in bytes.
pub(super) fn qp_bytes(settings: &ChannelSettings) -> u64 {
    u64::from(settings.window) * u64::from(settings.chunk_bytes)
}

fn refuse(text: String, hint: &str) -> Result<(), RunFailure> {
    Err(RunFailure::refused(text, hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    const USUAL: ChannelSettings = ChannelSettings {
        qps: 16,
        chunk_bytes: 1 << 18,
        window: 4,
        mtu_bytes: None,
        timeout: 14,
        retry_cnt: 7,
    };

    #[test]
    fn settings_out_of_range_are_bad_input() {
        check(&USUAL).unwrap();
        let refused = |change: fn(&mut ChannelSettings), says| {
            let mut settings = USUAL;
            change(&mut settings);
            let error = check(&settings).unwrap_err();
            assert!(error.bad_input);
            has(error.hint.unwrap(), [says]);
        };
        refused(|it| it.qps = 0, "--qps");
        refused(|it| it.qps = 5000, "--qps");
        refused(|it| it.window = 0, "--window");
        refused(|it| it.chunk_bytes = 0, "--chunk");
        refused(|it| it.chunk_bytes = 5000, "--chunk");
        refused(|it| (it.qps, it.window) = (4096, 1024), "4 GiB");
        refused(|it| it.retry_cnt = 8, "--retry-cnt");
        refused(|it| it.mtu_bytes = Some(1500), "--mtu");
    }
}
