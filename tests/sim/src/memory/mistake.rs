//! Rules that can be turned off, to see that the simulation finds out.

/// One rule turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A lock that is to be kept is free at once.
    FreedAtOnce,
    /// A lock is kept for the owner that left, whose late requests go on counting.
    KeptForItsOwner,
    /// A lease is replaced in two steps, and others come in between.
    InTwoSteps,
    /// A replacement that was not answered is released while its turn goes on.
    ReleasedTooSoon,
    /// A replacement that was not answered is asked again as another owner.
    AskedAsAnother,
    /// A reader goes on as the writer although others read.
    UpgradedBesideReaders,
    /// A permit is given although another holder has its slot.
    SlotsGivenTwice,
    /// Those that wait for permits are overtaken by one that fits.
    Overtaken,
}
