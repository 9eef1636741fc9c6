//! The null verbs library as the program's table: devices `null0`,
//! which completes every WR at once, and `loop0`, which moves bytes inside this process.

use null_verbs::{self as library};
use verbs::VerbsLibrary;

/// The table; one for the process.
pub fn null_library() -> &'static VerbsLibrary {
    static NULL: VerbsLibrary = verbs::library_of!("null-verbs", library);
    &NULL
}
