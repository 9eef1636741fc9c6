//! Settings that are words: CQ modes, polling, ways to connect, path MTUs, warm-ups, by which calls of libibverbs a flow
//! posts and polls, and which nodes talk to which.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::text::{as_text, nearest};
use super::units::{TimeSpan, TimeSpanError};

/// Why a word is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum WordError {
    #[error("`{word}` is not one of {known}{}", suggestion(*.nearest))]
    Unknown { word: String, known: String, nearest: Option<&'static str> },
    /// SEND with invalidate: in user space the key that it takes back can only be that of a memory window of type 2, which
    /// the target must bind again before the next.
    #[error(
        "send-inv is not measured: each such message invalidates a memory window, and the target would have to bind \
         the window again before each receive, so the figures would be those of binding; use send or send-imm"
    )]
    SendWithInvalidate,
    #[error("a warm-up is `auto`, `auto:10s` (with its cap), a time such as 2s, or 0: {0}")]
    Warmup(String),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

/// The value whose name is `word`.
pub(crate) fn find<T: Copy>(
    word: &str,
    values: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, WordError> {
    values.iter().copied().find(|item| name(*item) == word).ok_or_else(|| {
        let known: Vec<&'static str> = values.iter().map(|item| name(*item)).collect();
        WordError::Unknown {
            word: word.to_owned(),
            known: known.join(", "),
            nearest: nearest(word, &known),
        }
    })
}

/// An enum each of whose values has a name, by which it is shown.
#[macro_export]
macro_rules! names {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant),*
        }

        impl $name {
            /// All values, in the order in which they are declared.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The words of all.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }

            /// Its word on the command line and in files.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word),*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// An enum each of whose values has one word, on the command line and in files alike.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $crate::names! {
            $(#[$about])*
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            $name { $($(#[$doc])* #[serde(rename = $word)] $variant = $word),* }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::WordError;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::words::find(word, $name::ALL, $name::name)
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The order in which an adapter's writes reach this host's memory over PCIe.
    Ordering {
        /// One may pass another, where driver and adapter can.
        Relaxed = "relaxed",
        /// They arrive in the order in which they were made.
        Strict = "strict",
    }
}

words! {
    /// What `mesh --check` expects of paths from one rail to another.
    CrossRail {
        /// Nothing: they are not checked.
        Ignore = "ignore",
        /// They work.
        Required = "required",
        /// They do not work.
        Forbidden = "forbidden",
    }
}

words! {
    /// How QPs, CQs and workers belong together.
    CqMode {
        /// One CQ for all QPs, polled by all workers.
        Shared = "shared",
        /// One CQ for each worker's QPs.
        PerWorker = "per-worker",
        /// One CQ for each QP; a worker walks those of its QPs.
        PerQp = "per-qp",
    }
}

words! {
    /// How a worker learns of completions.
    PollMode {
        /// It polls its CQs without a pause.
        Busy = "busy",
        /// It sleeps on a completion channel while its CQs are empty.
        Event = "event",
        /// It polls for a short time, and then sleeps.
        Adaptive = "adaptive",
    }
}

words! {
    /// Which 8 bytes at the target atomic operations act on.
    AtomicTarget {
        /// The same for all QPs of a flow.
        Shared = "shared",
        /// Each QP acts on 8 bytes of its own.
        PerQp = "per-qp",
        /// Others for each WR of a QP's send queue.
        Spread = "spread",
    }
}

words! {
    /// Where the receives of a flow's QPs are posted.
    RecvQueue {
        /// Each QP has a queue of its own.
        PerQp = "per-qp",
        /// One queue, an SRQ, is for all QPs of the flow at its receiving end.
        Shared = "shared",
    }
}

words! {
    /// How the memory of a flow's QPs at one end is registered.
    MrMode {
        /// One MR for all QPs.
        One = "one",
        /// An MR for each QP.
        PerQp = "per-qp",
    }
}

words! {
    /// How messages follow each other in a working set.
    TouchOrder {
        /// Each lies behind the one before.
        Sequential = "sequential",
        /// They are shuffled, always in the same way.
        Random = "random",
    }
}

words! {
    /// How the QPs of both ends find each other.
    ConnectMode {
        /// The ends tell each other their QPs over the control connection.
        Tcp = "tcp",
        /// The connection manager: the kernel's, through librdmacm, or the embedded device's own.
        Cm = "cm",
    }
}

words! {
    /// Where work requests come from, and which QP each is posted on.
    Spread {
        /// Each QP is its own source: a completion posts the next on the same QP.
        Own = "own",
        /// Each worker is a source, whose QPs take turns.
        RoundRobin = "round-robin",
        /// Each worker is a source, and posts on the QP with the fewest outstanding.
        LeastLoaded = "least-loaded",
        /// Each worker is a source, and posts on the QP that a hash of the message's number says.
        Hash = "hash",
    }
}

words! {
    /// Who keeps an offered load.
    Pace {
        /// Workers: each message has a planned time.
        Worker = "worker",
        /// The device: it limits what each QP sends, and a completion posts the next message.
        Device = "device",
    }
}

words! {
    /// How the planned times of an open loop follow each other.
    Arrivals {
        /// Independently of each other: the gaps are exponential.
        Poisson = "poisson",
        /// All gaps are the same: one divided by the rate.
        Fixed = "fixed",
    }
}

/// A path MTU, in payload bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
#[allow(missing_docs)] // each is of so many bytes
pub enum Mtu {
    B256 = 256,
    B512 = 512,
    B1024 = 1024,
    B2048 = 2048,
    B4096 = 4096,
}

impl Mtu {
    /// The MTUs that a QP can have (InfiniBand specification, volume 1, 9.2.8), ascending.
    pub const ALL: [Mtu; 5] = [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096];

    /// Payload bytes of a full packet.
    pub fn bytes(self) -> u32 {
        self as u32
    }
}

impl From<Mtu> for u32 {
    fn from(mtu: Mtu) -> u32 {
        mtu.bytes()
    }
}

impl TryFrom<u32> for Mtu {
    type Error = String;

    fn try_from(bytes: u32) -> Result<Self, Self::Error> {
        Mtu::ALL
            .into_iter()
            .find(|mtu| mtu.bytes() == bytes)
            .ok_or_else(|| format!("an MTU is 256, 512, 1024, 2048 or 4096, not {bytes}"))
    }
}

impl FromStr for Mtu {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.parse::<u32>() {
            Ok(bytes) if !word.starts_with('+') => Mtu::try_from(bytes),
            _ => Err(format!("an MTU is 256, 512, 1024, 2048 or 4096, not `{word}`")),
        }
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}

impl JsonSchema for Mtu {
    fn schema_name() -> Cow<'static, str> {
        "Mtu".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": Mtu::ALL.map(Mtu::bytes) })
    }
}

/// How long a run warms up before its measurement window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Warmup {
    /// Until throughput is steady, but at most this many nanoseconds.
    AutoCapNs(u64),
    /// For this many nanoseconds; 0 is no warm-up.
    FixedNs(u64),
}

/// The longest automatic warm-up when none is given.
const AUTO_CAP_NS: u64 = 5_000_000_000;

impl Warmup {
    /// Until throughput is steady, but at most 5 s.
    pub const AUTO: Warmup = Warmup::AutoCapNs(AUTO_CAP_NS);

    /// The longest that the warm-up can take.
    pub fn longest(self) -> Duration {
        match self {
            Warmup::AutoCapNs(ns) | Warmup::FixedNs(ns) => Duration::from_nanos(ns),
        }
    }
}

fn warmup_ns(text: &str) -> Result<u64, WordError> {
    text.parse()
        .map(TimeSpan::ns)
        .map_err(|error: TimeSpanError| WordError::Warmup(error.to_string()))
}

impl FromStr for Warmup {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        match word.strip_prefix("auto") {
            Some("") => Ok(Warmup::AUTO),
            Some(rest) => match rest.strip_prefix(':').map(warmup_ns).transpose()? {
                Some(cap_ns) if cap_ns > 0 => Ok(Warmup::AutoCapNs(cap_ns)),
                Some(_) => Err(WordError::Warmup("for no warm-up give 0".into())),
                None => Err(WordError::Warmup(format!("not `{word}`"))),
            },
            None => warmup_ns(word).map(Warmup::FixedNs),
        }
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, ns) = match self {
            Warmup::AutoCapNs(ns) => ("auto:", *ns),
            Warmup::FixedNs(ns) => ("", *ns),
        };
        let span = TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX);
        f.pad(&format!("{prefix}{span}"))
    }
}

as_text!(Warmup, { "type": "string" });

words! {
    /// The calls by which sends are posted, or completions polled.
    CallStyle {
        /// `ibv_post_send` and `ibv_poll_cq`, with a structure for each WR and completion.
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

/// A rule that makes flows out of a list of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pattern {
    /// Each node to each other one, in rounds in which no node has more than one flow.
    Pairs,
    /// Each node to the next one, the last to the first.
    Ring,
    /// Others to this node; the first one where none is named.
    Incast(Option<String>),
    /// This node to others; the first one where none is named.
    Outcast(Option<String>),
    /// Each node to each other one at once.
    AllToAll,
    /// Each node of one half of the list to one of the other half, and back.
    Bisection,
    /// Each node to itself: both ends of the flow are on it.
    Loop,
}

pub(crate) const PATTERNS: [&str; 7] =
    ["pairs", "ring", "incast", "outcast", "all-to-all", "bisection", "loop"];

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PatternError {
    #[error(
        "`{word}` is not a pattern: patterns are {}{}", PATTERNS.join(", "),
        suggestion(*.nearest)
    )]
    Unknown { word: String, nearest: Option<&'static str> },
    #[error("`{0}` names a node: only incast and outcast take one, as incast:NODE, outcast:NODE")]
    Node(String),
    #[error(
        "`{0}` names no node after the colon: write incast:NODE, or incast alone for the first one"
    )]
    NoNode(String),
}

impl Pattern {
    /// Its word, without a node.
    pub fn word(&self) -> &'static str {
        match self {
            Pattern::Pairs => "pairs",
            Pattern::Ring => "ring",
            Pattern::Incast(_) => "incast",
            Pattern::Outcast(_) => "outcast",
            Pattern::AllToAll => "all-to-all",
            Pattern::Bisection => "bisection",
            Pattern::Loop => "loop",
        }
    }

    /// The node that it names.
    pub fn node(&self) -> Option<&str> {
        match self {
            Pattern::Incast(node) | Pattern::Outcast(node) => node.as_deref(),
            _ => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let (word, node) = match text.split_once(':') {
            Some((_, "")) => return Err(PatternError::NoNode(text.to_owned())),
            Some((word, node)) => (word, Some(node.to_owned())),
            None => (text, None),
        };
        let is_named = node.is_some();
        let pattern = match word {
            "pairs" => Pattern::Pairs,
            "ring" => Pattern::Ring,
            "incast" => Pattern::Incast(node),
            "outcast" => Pattern::Outcast(node),
            "all-to-all" => Pattern::AllToAll,
            "bisection" => Pattern::Bisection,
            "loop" => Pattern::Loop,
            _ => {
                let nearest = nearest(word, &PATTERNS);
                return Err(PatternError::Unknown { word: word.to_owned(), nearest });
            }
        };
        if pattern.node().is_none() && is_named {
            Err(PatternError::Node(text.to_owned()))
        } else {
            Ok(pattern)
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self.node() {
            Some(node) => write!(f, ":{node}"),
            None => Ok(()),
        }
    }
}

as_text!(Pattern, {
    "type": "string",
    "description": "`pairs`, `ring`, `incast`, `incast:NODE`, `outcast`, `outcast:NODE`, `all-to-all`, `bisection` or `loop`",
});

/// How a node's buffer is split among the nodes in an all-to-all exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Split {
    /// All nodes get the same.
    #[default]
    Equal,
    /// The n-th node of the list gets 1/n of what the first gets (G. K. Zipf, 1935).
    Zipf,
    /// The first nodes of the list, so many, get half of it together, and the others the rest.
    Hot(u32),
}

pub(crate) const SPLITS: [&str; 3] = ["equal", "zipf", "hot-1"];

impl Split {
    /// Bytes of the buffer for the node with this number.
    pub fn bytes_for(self, buffer_bytes: u32, node: u32, nodes: u32) -> u32 {
        let share = match self {
            Split::Zipf => {
                let sum: f64 = (1..=nodes).map(|rank| 1.0 / f64::from(rank)).sum();
                1.0 / f64::from(node + 1) / sum
            }
            Split::Hot(hot) if hot < nodes => {
                let alike = if node < hot { hot } else { nodes - hot };
                0.5 / f64::from(alike)
            }
            Split::Equal | Split::Hot(_) => 1.0 / f64::from(nodes.max(1)),
        };
        (f64::from(buffer_bytes) * share).round() as u32
    }
}

impl FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Split, String> {
        match (text, text.strip_prefix("hot-")) {
            ("equal", _) => Ok(Split::Equal),
            ("zipf", _) => Ok(Split::Zipf),
            (_, Some(count)) if !count.starts_with('+') => match count.parse() {
                Ok(hot) if hot > 0 => Ok(Split::Hot(hot)),
                _ => Err(format!("`{text}` names no number of nodes: write hot-1, hot-2, …")),
            },
            _ => Err(format!("a split is equal, zipf or hot-K, such as hot-2, not `{text}`")),
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Split::Equal => f.pad("equal"),
            Split::Zipf => f.pad("zipf"),
            Split::Hot(hot) => write!(f, "hot-{hot}"),
        }
    }
}

as_text!(Split, { "type": "string", "description": "`equal`, `zipf` or `hot-K`" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for cq in CqMode::ALL {
            assert_eq!(cq.name().parse::<CqMode>(), Ok(*cq));
        }
        for mtu in Mtu::ALL {
            assert_eq!(mtu.to_string().parse::<Mtu>(), Ok(mtu));
        }
    }

    #[test]
    fn a_wrong_word_names_the_right_ones() {
        let error = "per_qp".parse::<CqMode>().unwrap_err().to_string();
        let message = "`per_qp` is not one of shared, per-worker, per-qp; did you mean `per-qp`?";
        assert_eq!(error, message);
        assert!("1500".parse::<Mtu>().unwrap_err().contains("not 1500"));
        assert!("9999999999".parse::<Mtu>().is_err());
    }

    #[test]
    fn warm_ups() {
        for (word, warmup) in [
            ("auto", Warmup::AutoCapNs(5_000_000_000)),
            ("auto:10s", Warmup::AutoCapNs(10_000_000_000)),
            ("2s", Warmup::FixedNs(2_000_000_000)),
            ("0", Warmup::FixedNs(0)),
        ] {
            assert_eq!(word.parse::<Warmup>(), Ok(warmup), "{word}");
            assert_eq!(warmup.to_string().parse::<Warmup>(), Ok(warmup), "{word}");
        }
        for word in ["", "auto:", "auto:0", "autos", "auto10s", "long"] {
            assert!(word.parse::<Warmup>().is_err(), "{word}");
        }
    }

    #[test]
    fn patterns_are_read_as_they_are_written() {
        for word in PATTERNS {
            let pattern: Pattern = word.parse().unwrap();
            assert_eq!((pattern.to_string().as_str(), pattern.word()), (word, word));
        }
        let incast: Pattern = "incast:[::1]:18600".parse().unwrap();
        let node = Some("[::1]:18600");
        assert_eq!((incast.word(), incast.node()), ("incast", node));
        assert_eq!(incast.to_string().parse(), Ok(incast));
    }

    #[test]
    fn splits_are_read_back_and_give_each_node_its_share() {
        for (word, of_four) in [
            ("equal", [300, 300, 300, 300]),
            ("zipf", [576, 288, 192, 144]),
            ("hot-1", [600, 200, 200, 200]),
            ("hot-3", [200, 200, 200, 600]),
            ("hot-4", [300, 300, 300, 300]),
        ] {
            let split: Split = word.parse().unwrap();
            assert_eq!(split.to_string(), word);
            assert_eq!([0, 1, 2, 3].map(|node| split.bytes_for(1_200, node, 4)), of_four, "{word}");
        }
        for word in ["", "hot", "hot-", "hot-0", "hot-+1", "hot--1", "even"] {
            assert!(word.parse::<Split>().is_err(), "{word}");
        }
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, words) in [
            ("rings", "did you mean `ring`?"),
            ("", "patterns are pairs"),
            ("star", "patterns are pairs"),
            ("ring:node1", "only incast and outcast"),
            ("incast:", "no node after the colon"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
