//! What needs sockets, threads and real time: what the kernel is told, a socket that is full, memory that another thread
//! changes, a program that never polls.

mod corks;
mod datagrams;
mod hot_memory;
mod slow_link;
