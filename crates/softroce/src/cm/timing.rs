//! How long the manager waits, in nanoseconds, and in the code of messages: 4.096 µs × 2^code.

use crate::wire::time_of_code_ns;

/// How soon the other manager has to answer: 268 ms. The kernel asks for 4.3 s, after which a lost message is sent again;
/// managers answer by themselves, and ask for more time if their programs need it.
pub(super) const RESPONSE_TIMEOUT: u8 = 16;
/// How often a message is repeated: with the time above, an address that is silent is given up after 4.3 s.
pub(super) const MAX_RETRIES: u8 = 15;
/// The time that is asked for when the program has not answered yet: 4.3 s. The other end repeats its message after it,
/// which also finds an answer that was lost meanwhile; so it is not the 69 s that the kernel asks for.
pub(super) const SERVICE_TIMEOUT: u8 = 20;
/// How long a request waits for somebody who listens, before it is rejected: 0.5 s. A program may ask for a second
/// connection before the other end has got round to listening for it, as perftest's `-R` does; on adapters it is held up
/// by resolving addresses, which takes no time here.
pub(super) const LISTENER_PATIENCE_NS: u64 = 500_000_000;
/// How long an ended connection is remembered: twice the time above, so that a repeated message finds it.
pub(super) const TIME_WAIT_NS: u64 = 2 * time_of_code_ns(RESPONSE_TIMEOUT);
