//! Settings that say by which calls of libibverbs a flow posts and polls, and what it promises and asks for beside them.

use super::words::words;

words! {
    /// The calls by which sends are posted, or completions polled.
    CallStyle {
        /// `ibv_post_send`, `ibv_poll_cq`.
        Legacy = "legacy",
        /// `ibv_wr_start` and what follows it, `ibv_start_poll` and what follows it.
        Extended = "extended",
    }
}

words! {
    /// Promises to the library about the threads that use QPs and CQs.
    Domains {
        /// Nothing: any thread may, so it locks.
        Usual = "usual",
        /// One thread uses each of them, so it need not lock.
        Thread = "thread",
    }
}

words! {
    /// Whose time of a completion ends a latency.
    Timestamps {
        /// The CPU's, when the worker saw the completion.
        Cpu = "cpu",
        /// The device's, when it made the completion.
        Device = "device",
    }
}
