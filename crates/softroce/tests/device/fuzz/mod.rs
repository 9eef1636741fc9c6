//! Forged packets by the thousand: nothing breaks, and who is real is served as if there were none.

mod device;
mod forge;
mod parser;
