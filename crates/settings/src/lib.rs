//! Every setting of a case, said once (in `table`): its name as a flag and in a file, its type, default, range and
//! help; and which settings go together (in `rules`). Flags, configuration files, cases on the wire, results and their
//! headings are made from it.

mod as_text;
mod calls;
mod derived;
mod differing;
mod doubling;
mod duration;
mod given;
mod listed;
mod nearest;
mod op;
mod pattern;
mod qp_numbers;
mod rate;
mod row;
mod rules;
mod service;
mod size;
mod table;
mod value;
mod weights;
mod words;

pub use calls::{CallStyle, Domains, Timestamps};
pub use derived::Stop;
pub use differing::{NO_VALUE, differing, telling_apart};
pub use doubling::RangeError;
pub use duration::TimeSpan;
pub use given::{Given, GivenError};
pub use listed::listed;
pub use nearest::{is_near, nearest};
pub use op::{ATOMIC_BYTES, Access, Op, Profile, Workload};
pub use pattern::{Pattern, PatternError};
pub use qp_numbers::QpNumbers;
pub use rate::{Arrivals, Rate, RateError};
pub use row::{Id, Scope, SettingError, Takes};
pub use rules::{Misfit, Rule, RuleKind, rules};
pub use service::{LARGEST_MTU_BYTES, Service};
pub use size::{MemorySize, Size};
pub use table::{ROWS, Row, Settings};
pub use weights::{QpWeights, SizeMix, SmoothTurns};
pub use words::{
    AtomicTarget, ConnectMode, CqMode, MrMode, Mtu, Ordering, Pace, PageKind, PollMode, RecvQueue,
    Spread, TouchOrder, Warmup,
};
