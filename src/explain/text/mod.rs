//! The texts, apart from the code that uses them, and which of them belong to which step. A text may have placeholders such
//! as `{name}`.

mod en;
mod zh;

use node::lesson::{Note, Topic};
use protocol::lesson::Mistake;
use settings::{Access, Op};
use verbs::WcStatus;

/// A language of the lessons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    En,
    Zh,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::En, Language::Zh];

    /// Its code of ISO 639, with which the names of locales begin.
    pub const fn code(self) -> &'static str {
        match self {
            Language::En => "en",
            Language::Zh => "zh",
        }
    }

    pub fn text(self, key: Key) -> &'static str {
        match self {
            Language::En => en::text(key),
            Language::Zh => zh::text(key),
        }
    }

    /// The text with its placeholders filled in.
    pub fn filled(self, key: Key, values: &[(&str, &str)]) -> String {
        let mut text = self.text(key).to_owned();
        for (name, value) in values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

/// The texts of a step.
pub(super) struct Texts {
    /// The calls of the step; empty if it has none.
    pub(super) calls: &'static str,
    pub(super) title: Key,
    pub(super) body: Key,
    pub(super) careful: Option<Key>,
}

/// The text for an operation, by what it does to the target's memory. Lessons are of [`Op::BASIC`].
pub(super) fn by_access(op: Op, send: Key, write: Key, read: Key) -> Key {
    match op.profile().access {
        Access::None => send,
        Access::Write => write,
        Access::Read | Access::Add | Access::Swap => read,
    }
}

/// A WRITE or READ needs no call at the other end.
fn calls_of_send(op: Op, calls: &'static str) -> &'static str {
    if op.profile().receives { calls } else { "" }
}

/// The texts of a step about `topic`; `broken` is whether the transfer failed.
pub(super) fn texts(topic: Topic, op: Op, broken: bool) -> Texts {
    use Key as K;
    let (calls, title, body, careful) = match topic {
        Topic::Open => ("ibv_open_device", K::OpenTitle, K::OpenBody, K::OpenCareful),
        Topic::Port => {
            ("ibv_query_port, ibv_query_gid_ex", K::PortTitle, K::PortBody, K::PortCareful)
        }
        Topic::Pd => ("ibv_alloc_pd", K::PdTitle, K::PdBody, K::PdCareful),
        Topic::Mr => ("ibv_reg_mr", K::MrTitle, K::MrBody, K::MrCareful),
        Topic::Cq => ("ibv_create_cq", K::CqTitle, K::CqBody, K::CqCareful),
        Topic::Qp => ("ibv_create_qp", K::QpTitle, K::QpBody, K::QpCareful),
        Topic::Init => ("ibv_modify_qp", K::InitTitle, K::InitBody, K::InitCareful),
        Topic::Exchange => ("", K::ExchangeTitle, K::ExchangeBody, K::ExchangeCareful),
        Topic::Rtr => ("ibv_modify_qp", K::RtrTitle, K::RtrBody, K::RtrCareful),
        Topic::Rts => ("ibv_modify_qp", K::RtsTitle, K::RtsBody, K::RtsCareful),
        Topic::Ready => (
            calls_of_send(op, "ibv_post_recv"),
            K::ReadyTitle,
            by_access(op, K::ReadySendBody, K::ReadyWriteBody, K::ReadyReadBody),
            by_access(op, K::ReadySendCareful, K::ReadyMemoryCareful, K::ReadyMemoryCareful),
        ),
        Topic::Post => (
            "ibv_post_send",
            K::PostTitle,
            by_access(op, K::PostSendBody, K::PostWriteBody, K::PostReadBody),
            K::PostCareful,
        ),
        Topic::Poll => (
            "ibv_poll_cq",
            K::PollTitle,
            by_access(op, K::PollSendBody, K::PollWriteBody, K::PollReadBody),
            K::PollCareful,
        ),
        Topic::Wire => ("", K::WireTitle, K::WireBody, K::WireCareful),
        Topic::Look => (
            calls_of_send(op, "ibv_poll_cq"),
            K::LookTitle,
            by_access(op, K::LookSendBody, K::LookWriteBody, K::LookReadBody),
            by_access(op, K::LookSendCareful, K::LookWriteCareful, K::LookReadCareful),
        ),
        Topic::TearDown => (
            "ibv_destroy_qp, ibv_destroy_cq, ibv_dereg_mr, …",
            K::TearDownTitle,
            K::TearDownBody,
            K::TearDownCareful,
        ),
    };
    if broken && topic == Topic::Look {
        return Texts { calls: "", title, body: K::LookBrokenBody, careful: None };
    }
    Texts { calls, title, body, careful: Some(careful) }
}

/// The text of a remark.
pub(super) fn text_of_note(note: Note) -> Key {
    match note {
        Note::TheirQpn => Key::TheirQpn,
        Note::TheirPsn => Key::TheirPsn,
        Note::OurPsn => Key::OurPsn,
        Note::TheirGid => Key::TheirGid,
        Note::SourceGid => Key::SourceGid,
        Note::SmallerMtu => Key::SmallerMtu,
        Note::LargerMtu => Key::LargerMtu,
        Note::WrongGid => Key::WrongGid,
        Note::WrongRkey => Key::WrongRkey,
        Note::TheirAddress => Key::TheirAddress,
        Note::TheirRkey => Key::TheirRkey,
        Note::Timeout => Key::Timeout,
        Note::RetryCnt => Key::RetryCnt,
        Note::RnrRetry => Key::RnrRetry,
        Note::RnrForEver => Key::RnrForEver,
        Note::MinRnrTimer => Key::MinRnrTimer,
        Note::RemoteMay => Key::RemoteMay,
        Note::RemoteMayNot => Key::RemoteMayNot,
        Note::Signalled => Key::Signalled,
        Note::OurMemory => Key::OurMemory,
        Note::WrId => Key::WrId,
    }
}

/// The meaning of a completion status.
pub(super) fn meaning(status: WcStatus) -> Key {
    match status.0 {
        9 => Key::MeansInvalid,
        10 => Key::MeansAccess,
        11 => Key::MeansRemote,
        12 => Key::MeansRetry,
        13 => Key::MeansRnr,
        _ => Key::MeansOther,
    }
}

/// The text shown where a mistake is made.
pub(super) fn on_purpose(mistake: Mistake) -> Key {
    match mistake {
        Mistake::Gid => Key::GidOnPurpose,
        Mistake::Rkey => Key::RkeyOnPurpose,
        Mistake::NoRecv => Key::NoRecvOnPurpose,
        Mistake::QpCount => Key::QpCountOnPurpose,
        Mistake::Mtu => Key::MtuOnPurpose,
    }
}

/// Whether this step of a lesson with a mistake shows what the mistake does, or its explanation refers to the step.
pub(super) fn concerns(mistake: Mistake, topic: Topic) -> bool {
    match topic {
        Topic::Exchange => mistake != Mistake::NoRecv,
        Topic::Poll | Topic::Wire | Topic::Look => true,
        _ => false,
    }
}

/// The explanation of a mistake: cause, symptom, check, remedy.
pub(super) fn explanation(mistake: Mistake) -> [(Key, Key); 4] {
    let [cause, see, check, remedy] = match mistake {
        Mistake::Gid => [Key::GidCause, Key::GidSee, Key::GidCheck, Key::GidRemedy],
        Mistake::Rkey => [Key::RkeyCause, Key::RkeySee, Key::RkeyCheck, Key::RkeyRemedy],
        Mistake::NoRecv => [Key::NoRecvCause, Key::NoRecvSee, Key::NoRecvCheck, Key::NoRecvRemedy],
        Mistake::QpCount => {
            [Key::QpCountCause, Key::QpCountSee, Key::QpCountCheck, Key::QpCountRemedy]
        }
        Mistake::Mtu => [Key::MtuCause, Key::MtuSee, Key::MtuCheck, Key::MtuRemedy],
    };
    [(Key::Cause, cause), (Key::See, see), (Key::Check, check), (Key::Remedy, remedy)]
}

macro_rules! keys {
    ($($name:ident)*) => {
        /// The key of a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Key { $($name,)* }

        impl Key {
            pub const ALL: &'static [Key] = &[$(Key::$name,)*];
        }
    };
}

keys! {
    HeadSend HeadWrite HeadRead HeadBroken
    HeadThis HeadThisEmbedded HeadLocal HeadRemote
    ThisEnd OtherEnd Careful OnPurpose Error OtherSays LeftOut

    OpenTitle OpenBody OpenCareful
    PortTitle PortBody PortCareful
    PdTitle PdBody PdCareful
    MrTitle MrBody MrCareful
    CqTitle CqBody CqCareful
    QpTitle QpBody QpCareful
    InitTitle InitBody InitCareful
    ExchangeTitle ExchangeBody ExchangeCareful
    RtrTitle RtrBody RtrCareful
    RtsTitle RtsBody RtsCareful
    ReadyTitle ReadySendBody ReadyWriteBody ReadyReadBody ReadySendCareful ReadyMemoryCareful
    PostTitle PostSendBody PostWriteBody PostReadBody PostCareful
    PollTitle PollSendBody PollWriteBody PollReadBody PollCareful
    WireTitle WireBody WireCareful UnseenBody UnseenSoftware UnseenHardware
    LookTitle LookSendBody LookWriteBody LookReadBody LookBrokenBody
    LookSendCareful LookWriteCareful LookReadCareful
    TearDownTitle TearDownBody TearDownCareful

    MemoryThis MemoryThisAfter MemoryOtherBefore MemoryOtherAfter AsText Waited MorePackets
    RowQpn RowPsn RowGid RowAddress RowRkey RowLength RowMtu
    PacketSent PacketReceived PacketPayload PacketPadding PacketIcrcOk PacketIcrcWrong PacketAckRequest
    PacketAgain PacketUnknown PacketNote

    TheirQpn TheirPsn OurPsn TheirGid SourceGid SmallerMtu LargerMtu WrongGid WrongRkey
    TheirAddress TheirRkey Timeout RetryCnt RnrRetry RnrForEver MinRnrTimer RemoteMay RemoteMayNot
    Signalled OurMemory WrId

    GidOnPurpose GidCause GidSee GidCheck GidRemedy
    RkeyOnPurpose RkeyCause RkeySee RkeyCheck RkeyRemedy
    NoRecvOnPurpose NoRecvCause NoRecvSee NoRecvCheck NoRecvRemedy
    QpCountOnPurpose QpCountCause QpCountSee QpCountCheck QpCountRemedy
    MtuOnPurpose MtuCause MtuSee MtuCheck MtuRemedy
    Status Silence MeansInvalid MeansAccess MeansRemote MeansRetry MeansRnr MeansOther

    WhyTitle Cause See Check Remedy

    Arrived NotArrived Promised NotPromised NoError
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    /// Options, functions, states and errors have the same names in both languages; a translation may omit one.
    fn things(text: &str) -> BTreeSet<&str> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))
            .filter(|word| word.contains('_') || word.starts_with("--") && word.len() > 2)
            .collect()
    }

    #[test]
    fn both_languages_have_the_same_places_and_name_the_same_things() {
        for key in Key::ALL {
            let (en, zh) = (Language::En.text(*key), Language::Zh.text(*key));
            assert!(!en.is_empty() && !zh.is_empty(), "{key:?}");
            assert_eq!(places(en), places(zh), "{key:?}");
            assert_eq!(things(en), things(zh), "{key:?}");
        }
    }

    #[test]
    fn chinese_is_chinese() {
        for key in Key::ALL {
            let [en, zh] = [Language::En, Language::Zh].map(|language| language.text(*key));
            let is_chinese = |c| ('\u{4e00}'..='\u{9fff}').contains(&c);
            assert!(zh.chars().any(is_chinese), "{key:?}: {zh}");
            // Half-width punctuation is wrong in Chinese text.
            for wrong in [", ", "; ", "? ", "! "] {
                assert!(!zh.contains(wrong), "{key:?}: {zh}");
            }
            assert!(!en.chars().any(|c| c >= '\u{3000}'), "{key:?}");
        }
    }
}
