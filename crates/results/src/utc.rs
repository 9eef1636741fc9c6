//! The present time as results write it.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The present time, such as `2026-11-20T12:00:00.5Z`.
pub fn utc_now() -> String {
    // Formatting fails only after the year 9999.
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_time_can_be_read_back() {
        assert!(OffsetDateTime::parse(&utc_now(), &Rfc3339).is_ok_and(|now| now.year() > 2000));
    }
}
