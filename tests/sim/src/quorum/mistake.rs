//! Rules of the quorum that can be turned off, to see that the simulation finds out.

/// One rule turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A node acknowledges a token whatever its grant's own is.
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
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NoGrantTest,
        Self::NoSecondRound,
        Self::NoMarker,
        Self::NoDwell,
        Self::CountedFromAnswer,
        Self::NoReleaseToAll,
        Self::OwnCounter,
    ];
}
