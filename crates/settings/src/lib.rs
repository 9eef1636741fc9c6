//! Every setting of a case, said once (in `table`): its name as a flag and in a file, its type, default, range and
//! help; and which settings go together (in `rules`). Flags, configuration files, cases on the wire, results and their
//! headings are made from it.

#![warn(missing_docs)]

mod derived;
mod given;
mod lists;
mod on_times;
mod op;
mod places;
mod row;
mod rules;
mod table;
mod text;
pub mod text_file;
mod units;
mod words;

pub use derived::{NO_VALUE, Stop, differing, telling_apart};
pub use given::{Given, GivenError};
pub use lists::{QpNumbers, QpWeights, RangeError, SizeMix, SmoothTurns};
pub use on_times::OnTimes;
pub use op::{ATOMIC_BYTES, Access, LARGEST_MTU_BYTES, Op, Profile, Service, Workload};
pub use places::{GpuMaker, MemoryAt, MemoryPlace, PlaceError, Register};
pub use row::{Id, Scope, SettingError, Takes};
pub use rules::{Misfit, Rule, RuleKind, rules};
pub use table::{ROWS, Row, Settings};
pub use text::{is_near, listed, nearest};
pub use units::{MemorySize, Rate, RateError, Size, TimeSpan};
pub use words::{
    Arrivals, AtomicTarget, CallStyle, ConnectMode, CqMode, CrossRail, Domains, MrMode, Mtu,
    Ordering, Pace, Pattern, PatternError, PollMode, RecvQueue, Split, Spread, Timestamps,
    TouchOrder, Warmup,
};
