//! What can go wrong in the world, and how often it did.

/// Something that goes wrong, or a rare event that a run must have met to be meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Fault {
    /// A request was lost on its way.
    RequestLost,
    /// An answer was lost on its way.
    AnswerLost,
    /// A request arrived twice.
    RequestDoubled,
    /// An answer arrived twice.
    AnswerDoubled,
    /// A message was lost.
    PushLost,
    /// A message arrived twice.
    PushDoubled,
    /// A message overtook an answer that was sent before it.
    PushOvertook,
    /// Something was sent into a network partition.
    Gap,
    /// Something was slow.
    Delayed,
    /// A connection was cut.
    Cut,
    /// The server believed a connection to be alive whose client was gone.
    HalfOpen,
    /// A request was sent before the cut, and arrived after its client had reconnected.
    Ghost,
    /// A request failed before it was sent.
    NotSent,
    /// A process was suspended.
    Paused,
    /// A process was suspended, and its timers for longer.
    Suspended,
    /// A process ended.
    Killed,
    /// A process lived for only some seconds.
    ShortLived,
    /// The server was suspended.
    Frozen,
    /// The server was suspended for longer than most leases last.
    Hung,
    /// The server restarted with its data.
    RestartedWithData,
    /// The server restarted without its data.
    RestartedEmpty,
    /// The server restarted with an old copy of its data.
    RestartedFromCopy,
    /// The server restarted with an old copy of its data, as the same run.
    RolledBack,
    /// The server's clock was set back; a single server's by less than it was away.
    SetBack,
    /// A node's clock was set forward.
    SetForward,
    /// A node's clock ran far too fast for some time.
    RanFast,
    /// A node's clock ran far too slowly for some time.
    RanSlow,
    /// The nodes' clocks were far apart.
    ClocksApart,
    /// The server's data were deleted while it ran.
    Flushed,
    /// An operator ended a lease.
    Revoked,
    /// A client of the plain layout took the lock.
    ForeignHeld,
    /// So many nodes forgot that the others did not know what was lost.
    MajorityForgot,
    /// A node was seen to have forgotten, and abstained.
    Abstained,
    /// A node voted again, restored from the others.
    Recovered,
    /// A node voted again, restored by its clock.
    RecoveredByClock,
    /// An operator moved a deployment while its clients ran.
    Moved,
    /// A node acknowledged a grant for which it had drawn a lower token.
    RoundTwo,
    /// A node refused to acknowledge a token below its grant's own.
    Higher,
    /// A lock was handed over to a waiter of a process that had ended.
    HandedToTheDead,
    /// A claim was refused because of a tombstone.
    Buried,
    /// A waiter was admitted by a message.
    AdmittedByPush,
    /// Two locks were held as one.
    SetHeld,
    /// A waiter gave up.
    Cancelled,
    /// A holder lost its hold.
    Lost,
    /// The resource refused a write because of its old token.
    WriteRefused,
    /// Somebody left and wanted the lock kept.
    Kept,
    /// A lease was replaced by another one.
    Replaced,
    /// A reader began while others of its process held.
    ReadTogether,
    /// A writer went on as a reader.
    Downgraded,
    /// A reader went on as the writer.
    Upgraded,
    /// Permits were held beside others of the same process.
    HeldTogether,
    /// Some permits were given back.
    GaveBack,
    /// All had arrived at a latch.
    Opened,
    /// A latch was reset.
    LatchReset,
    /// An arrival was repeated after a reset.
    LateArrival,
    /// A barging claim was granted before others that had waited for longer.
    Barged,
    /// A holder let go of its lease.
    Detached,
    /// Somebody went on with a lease that was detached.
    Adopted,
    /// A ticket was over when somebody wanted to adopt it.
    TicketOver,
    /// A replica was chosen as the primary while the primary ran.
    PromotedBesideOld,
    /// A replica was chosen as the primary, and had not all that its primary had.
    PromotedBehind,
    /// A replica restarted without its data.
    ReplicaForgot,
    /// A request was served by a primary that had been replaced.
    ServedByOld,
    /// A replica got nothing from its primary, or a follower from its leader, for some time.
    Lagged,
    /// Too few replicas acknowledged a grant or a renewal in time.
    TooFewReplicas,
    /// A lock that was free was not granted, because the server dwelt.
    Dwelt,
    /// During a dwell, a valid holder handed its lock over.
    HandedOverInDwell,
    /// During a dwell, a repeated release freed a lock for nobody.
    FreedInDwell,
    /// A client moved to another primary.
    Followed,
    /// The store ended the session of a client.
    SessionLost,
    /// The store ended a session later than it may.
    ExpiredLate,
    /// A client went on with its session on another connection.
    SessionMoved,
    /// A waiter was told what was so at some earlier time.
    StaleRead,
    /// A waiter was woken later than the others.
    WatchLate,
    /// A connection ended over which a waiter was to be woken.
    WatchLost,
    /// A follower ended.
    FollowerLost,
    /// A follower ended that had not told its leader of a sign of life.
    TouchLost,
    /// A follower refused a client that had seen more than it.
    FollowerBehind,
    /// A client's releases were refused for the rest of its session.
    ReleasesRefused,
    /// A client gave its session up.
    SessionGivenUp,
    /// A sentinel told a client of an earlier primary than another one had told it of.
    OldNews,
    /// Watches were lost in a compaction.
    Compacted,
    /// An entry got a lease, and its key, that another one had before.
    KeyReused,
    /// A change of an entry came late: it had changed meanwhile.
    ChangedMeanwhile,
    /// The entry of a holder moved from the lease of its place to one that lasts for the ttl.
    MovedToOwnLease,
    /// A server that had just started did not know its leases.
    LeaseUnknown,
    /// A leader that had been deposed had a lease ended that the new one did not take for ended.
    EndedByDeposed,
}

impl Fault {
    /// How many there are.
    const COUNT: usize = Self::EndedByDeposed as usize + 1;
}

/// How often each fault fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally([u64; Fault::COUNT]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; Fault::COUNT])
    }
}

impl Tally {
    pub(crate) fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often it fired.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (mine, more) in self.0.iter_mut().zip(other.0) {
            *mine += more;
        }
    }
}
