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
    /// A lease is replaced again for another owner, and the one that had replaced it ends.
    AdoptedTwice,
    /// A reader goes on as the writer although others read.
    UpgradedBesideReaders,
    /// A station is not told that others wait, and readers go on joining its lease.
    DeafReaders,
    /// There is one permit more than the limit.
    OneTooMany,
    /// A slot is granted again while its holder lives.
    SlotReused,
    /// The last to come is served first.
    LastServedFirst,
    /// A lease ends a little before its time.
    EndedEarly,
    /// A lease that nobody renews never ends.
    NeverEnded,
    /// Sets of locks are acquired in any order.
    AnyOrder,
    /// A latch counts each request to arrive.
    CountsTwice,
    /// A count is set for the present generation, whichever it is for.
    CountsAnything,
    /// A release is given up after the ttl, although its entry lasts as long as the session.
    GivenUpAfterTtl,
    /// The session goes on, whatever a station owes.
    SessionKept,
    /// The store ends a session before those who hold under it are told.
    ToldAfterwards,
    /// A claim is judged by an old list, with its own entry at the end.
    OldListBelieved,
    /// The newest write that was answered proves when the session was alive.
    NewestProves,
    /// A waiter is woken only when the entry before its own ends.
    PredecessorWatched,
    /// A waiter relies on being woken, and does not look again by itself.
    WakingTrusted,
    /// The store ends sessions before their time.
    ExpiredEarly,
    /// The store begins to count tokens anew after a loss of data.
    TokensFall,
    /// A renewal of a lease counts when it is answered, by any server.
    KeepaliveCounts,
    /// A renewal of a lease counts in any term, if that is the same before and after it.
    AnyTermCounts,
    /// A renewal says that the entry is there without reading its key.
    KeyUnread,
    /// A change or a deletion of an entry compares only the revision that created it.
    CreationCompared,
}
