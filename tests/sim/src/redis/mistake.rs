//! Rules that can be turned off, to check that the simulation notices.

/// One rule turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The validity of a lease that was handed over counts from the message instead of from the latest answered request.
    CountedFromPush,
    /// A lease that is handed over lasts for the ttl of the previous holder, instead of the waiter's place.
    ReleasersTtl,
    /// Asking again as the holder does not re-arm the ttl.
    NotRearmed,
    /// A new connection does not compare the marker, so the counter is not raised after a loss of data.
    Unverified,
    /// A grant that nobody wants any more is kept instead of released.
    UnwantedKept,
    /// A station keeps sending claims however many releases are pending.
    UnboundedDebt,
    /// Answers do not report the tokens that were drawn, so a grant that had ended by then seems to be later.
    DrawnForgotten,
}
