//! The worker loops: what runs for every message. Nothing in a loop allocates, locks, prints or makes
//! a system call beyond what verbs itself does. It must not know sockets, files or results.
