//! Rules that can be turned off, to check that the simulation notices.

/// One rule turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A primary that forgot, or was a replica before, grants free locks at once.
    NoDwell,
    /// A grant or a renewal is answered before any replica has it.
    NoAcknowledgement,
    /// One of two replicas is enough for an answer.
    OneOfTwo,
    /// A lock that was handed over counts without an acknowledgement. Both primaries have to hand the same lock over: this is found
    /// once in thousands of fail-overs, and once in some hundreds of those with many waiters.
    PushedAtOnce,
    /// During a dwell, every release hands the lock over, not only the first attempt of a valid holder.
    EveryReleaseHandsOver,
    /// A client follows whatever a sentinel says, even if it has heard of a later primary.
    GoesBack,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NoDwell,
        Self::NoAcknowledgement,
        Self::OneOfTwo,
        Self::PushedAtOnce,
        Self::EveryReleaseHandsOver,
        Self::GoesBack,
    ];
}
