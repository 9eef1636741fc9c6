//! How long an end waits for the other one.

use std::time::Duration;

/// Longest time for the other end to create or connect its objects.
pub const SETUP_LIMIT: Duration = Duration::from_secs(120);

/// Longest time for a short answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);
