//! Rules of the quorum that can be turned off, to check that the simulation notices.

use lock_redlock::quorum::Rule;

/// One rule turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A node acknowledges a token whatever its grant's own token is.
    NoGrantTest,
    /// Grants count as acknowledged whatever their tokens are: there is no second round.
    NoSecondRound,
    /// A node that forgot votes at once, as if nothing had been.
    NoMarker,
    /// A node that was marked is installed at once.
    NoDwell,
    /// A lease counts from its answer, and so a guard is handed out though its validity is over.
    CountedFromAnswer,
    /// A claim that failed leaves the grants that it had.
    NoReleaseToAll,
    /// A node is installed with its own counter instead of the others'.
    OwnCounter,
    /// A ttl is used that was not announced to a majority.
    NoAnnouncement,
    /// One old record is enough to end a dwell.
    OneRecord,
    /// A node that is restored by its clock keeps the longest ttl that was read.
    LowLongest,
    /// A dwell counts up to its end, not up to the look that determined its length.
    PastLook,
    /// A blank node counts, and is restored, while nodes of another deployment answer.
    BlankIsOurs,
    /// A node that restarts with data from before a move counts, and is restored, while nodes that were moved answer.
    OutdatedIsOurs,
    /// A release is sent while its claim is in flight, and leaves no tombstone.
    ReleaseAtOnce,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::NoGrantTest,
        Self::NoSecondRound,
        Self::NoMarker,
        Self::NoDwell,
        Self::CountedFromAnswer,
        Self::NoReleaseToAll,
        Self::OwnCounter,
        Self::NoAnnouncement,
        Self::OneRecord,
        Self::LowLongest,
        Self::PastLook,
        Self::BlankIsOurs,
        Self::OutdatedIsOurs,
        Self::ReleaseAtOnce,
    ];

    /// The rule of the real code that it turns off. The other mistakes break what surrounds that code.
    pub(super) fn rule(self) -> Option<Rule> {
        match self {
            Self::NoAnnouncement => Some(Rule::Announcement),
            Self::OneRecord => Some(Rule::MajorityOfRecords),
            Self::LowLongest => Some(Rule::LongestByClock),
            Self::PastLook => Some(Rule::OverBeforeLook),
            Self::BlankIsOurs => Some(Rule::BlankMayBeTheirs),
            Self::OutdatedIsOurs => Some(Rule::OutdatedIsBlank),
            Self::ReleaseAtOnce => Some(Rule::ReleaseAfterClaim),
            Self::NoGrantTest
            | Self::NoSecondRound
            | Self::NoMarker
            | Self::NoDwell
            | Self::CountedFromAnswer
            | Self::NoReleaseToAll
            | Self::OwnCounter => None,
        }
    }
}
