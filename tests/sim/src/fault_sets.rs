//! What each kind of play has to meet.

use crate::fault::Fault;

impl Fault {
    /// What can go wrong with one Redis.
    pub const WITH_ONE_REDIS: [Self; 30] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::AnswerDoubled,
        Self::PushLost,
        Self::PushDoubled,
        Self::PushOvertook,
        Self::Delayed,
        Self::Cut,
        Self::HalfOpen,
        Self::Ghost,
        Self::NotSent,
        Self::Paused,
        Self::Suspended,
        Self::Killed,
        Self::Frozen,
        Self::Hung,
        Self::RestartedWithData,
        Self::RestartedEmpty,
        Self::RestartedFromCopy,
        Self::SetBack,
        Self::Flushed,
        Self::Revoked,
        Self::ForeignHeld,
        Self::HandedToTheDead,
        Self::Buried,
        Self::AdmittedByPush,
        Self::SetHeld,
        Self::Cancelled,
        Self::Lost,
        Self::WriteRefused,
    ];

    /// What happens besides at the reference store, which does more than hold locks for one at a time.
    pub const OF_ALL_KINDS: [Self; 15] = [
        Self::RequestDoubled,
        Self::Kept,
        Self::Replaced,
        Self::ReadTogether,
        Self::Downgraded,
        Self::Upgraded,
        Self::HeldTogether,
        Self::GaveBack,
        Self::Opened,
        Self::LatchReset,
        Self::LateArrival,
        Self::Adopted,
        Self::Barged,
        Self::Detached,
        Self::TicketOver,
    ];

    /// What can go wrong with a store whose entries end with a session.
    pub const WITH_SESSIONS: [Self; 26] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::AnswerDoubled,
        Self::PushLost,
        Self::Delayed,
        Self::Cut,
        Self::HalfOpen,
        Self::Ghost,
        Self::NotSent,
        Self::Paused,
        Self::Suspended,
        Self::Killed,
        Self::Frozen,
        Self::Hung,
        Self::RestartedWithData,
        Self::RestartedEmpty,
        Self::RestartedFromCopy,
        Self::SetBack,
        Self::Flushed,
        Self::Revoked,
        Self::Buried,
        Self::Cancelled,
        Self::Lost,
        Self::SessionLost,
        Self::ReleasesRefused,
        Self::SessionGivenUp,
    ];

    /// What can go wrong with a Redis that has replicas.
    pub const WITH_REPLICAS: [Self; 27] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::PushLost,
        Self::Delayed,
        Self::Cut,
        Self::Ghost,
        Self::NotSent,
        Self::Paused,
        Self::Suspended,
        Self::Killed,
        Self::RestartedWithData,
        Self::RestartedEmpty,
        Self::RestartedFromCopy,
        Self::AdmittedByPush,
        Self::Cancelled,
        Self::Lost,
        Self::PromotedBesideOld,
        Self::PromotedBehind,
        Self::ReplicaForgot,
        Self::ServedByOld,
        Self::Lagged,
        Self::TooFewReplicas,
        Self::Dwelt,
        Self::HandedOverInDwell,
        Self::FreedInDwell,
        Self::Followed,
        Self::OldNews,
    ];

    /// What happens in a single fail-over.
    pub const IN_A_FAILOVER: [Self; 8] = [
        Self::RestartedFromCopy,
        Self::PromotedBesideOld,
        Self::PromotedBehind,
        Self::ServedByOld,
        Self::TooFewReplicas,
        Self::Dwelt,
        Self::HandedOverInDwell,
        Self::FreedInDwell,
    ];

    /// What happens while a lock is handed over during a fail-over.
    pub const IN_HAND_OVERS: [Self; 4] =
        [Self::PromotedBesideOld, Self::ServedByOld, Self::TooFewReplicas, Self::HandedOverInDwell];

    /// What goes wrong in the plots of a quorum.
    pub const IN_A_PLOT: [Self; 9] = [
        Self::Gap,
        Self::Paused,
        Self::Frozen,
        Self::RestartedFromCopy,
        Self::SetForward,
        Self::Flushed,
        Self::Recovered,
        Self::RecoveredByClock,
        Self::Moved,
    ];

    /// What can go wrong with a quorum.
    pub const WITH_A_QUORUM: [Self; 34] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::RequestDoubled,
        Self::AnswerDoubled,
        Self::Gap,
        Self::Delayed,
        Self::Cut,
        Self::HalfOpen,
        Self::Ghost,
        Self::NotSent,
        Self::Paused,
        Self::Suspended,
        Self::Killed,
        Self::ShortLived,
        Self::Frozen,
        Self::RestartedWithData,
        Self::RestartedEmpty,
        Self::RestartedFromCopy,
        Self::RolledBack,
        Self::SetBack,
        Self::SetForward,
        Self::RanFast,
        Self::RanSlow,
        Self::ClocksApart,
        Self::Flushed,
        Self::MajorityForgot,
        Self::Abstained,
        Self::Recovered,
        Self::RecoveredByClock,
        Self::RoundTwo,
        Self::Higher,
        Self::Buried,
        Self::Cancelled,
        Self::WriteRefused,
    ];
}
