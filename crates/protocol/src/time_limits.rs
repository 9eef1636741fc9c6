//! How long one end of a link waits for the other.

use std::time::Duration;

/// Longest time for a node to create or connect its objects.
pub const SETUP_LIMIT: Duration = Duration::from_secs(120);

/// Longest time for a short answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(30);
