//! The keys of the texts, in the order of a lesson.

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
