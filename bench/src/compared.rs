//! Who takes part in a scenario, who is compared with whom, and what they are called.

use bench_measure::{Runtime, Subject};

use crate::kind::Kind;
use crate::scenario::Scenario;

impl Scenario {
    /// Who takes part.
    pub(crate) fn subjects(&self) -> &'static [Subject] {
        use Subject::{
            Bare, ByHand, Chain0, Dwell, Leasehold, OneReplica, Permit, PermitByHand, Pool, Read, ReadByHand, Rslock,
            RslockEager, SixteenthHeld, TwoReplicas,
        };
        match self.kind {
            Kind::Pairs { runtime: Runtime::Blocking, .. } => &[Bare, ByHand, Leasehold],
            Kind::Pairs { .. } => &[Bare, ByHand, Leasehold, Rslock],
            Kind::Read => &[ByHand, Leasehold, ReadByHand, Read],
            Kind::Permit => &[ByHand, Leasehold, PermitByHand, Permit],
            Kind::Held { .. } => &[Leasehold, SixteenthHeld],
            Kind::Contend { .. } => &[Bare, Chain0, Leasehold, RslockEager, Rslock],
            Kind::Permits { .. } => &[Chain0, Permit],
            Kind::Pool(_) => &[Leasehold, Pool],
            Kind::Hold => &[Bare, Leasehold, Rslock],
            Kind::Memory => &[Bare, Leasehold, Rslock],
            Kind::Crash => &[Bare, Leasehold, Chain0, Rslock],
            Kind::Queue | Kind::Readers => &[ByHand],
            Kind::Quorum { .. } | Kind::Beside => &[ByHand, Leasehold, Rslock],
            Kind::Broken(_) => &[Leasehold, Rslock],
            Kind::DatabasePairs { .. } | Kind::DatabaseContend { .. } | Kind::DatabaseWait { .. } | Kind::Reads => {
                &[Bare, Leasehold]
            }
            Kind::Replicated { .. } => &[Leasehold, OneReplica, TwoReplicas],
            Kind::FailOver => &[Bare, Leasehold, Dwell],
        }
    }

    /// The subject that the others are compared with.
    pub(crate) fn base(&self) -> Subject {
        match self.kind {
            Kind::Pairs { .. }
            | Kind::Contend { .. }
            | Kind::Hold
            | Kind::Memory
            | Kind::Crash
            | Kind::DatabasePairs { .. }
            | Kind::DatabaseContend { .. }
            | Kind::DatabaseWait { .. }
            | Kind::Reads
            | Kind::FailOver => Subject::Bare,
            Kind::Queue | Kind::Readers | Kind::Quorum { .. } | Kind::Beside => Subject::ByHand,
            Kind::Read
            | Kind::Permit
            | Kind::Held { .. }
            | Kind::Pool(_)
            | Kind::Broken(_)
            | Kind::Replicated { .. } => Subject::Leasehold,
            Kind::Permits { .. } => Subject::Chain0,
        }
    }

    /// The subject of this library that says most about it.
    pub(crate) fn ours(&self) -> Subject {
        match self.kind {
            Kind::Held { .. } => Subject::SixteenthHeld,
            Kind::Pool(_) => Subject::Pool,
            Kind::Replicated { .. } => Subject::OneReplica,
            Kind::Read => Subject::Read,
            Kind::Permit | Kind::Permits { .. } => Subject::Permit,
            Kind::Queue | Kind::Readers => Subject::ByHand,
            Kind::Pairs { .. }
            | Kind::Contend { .. }
            | Kind::Hold
            | Kind::Memory
            | Kind::Crash
            | Kind::Quorum { .. }
            | Kind::Beside
            | Kind::Broken(_)
            | Kind::DatabasePairs { .. }
            | Kind::DatabaseContend { .. }
            | Kind::DatabaseWait { .. }
            | Kind::Reads
            | Kind::FailOver => Subject::Leasehold,
        }
    }
}

/// What a subject is called in tables.
pub(crate) fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Bare => "bare pair",
        Subject::ByHand => "our scripts by hand",
        Subject::ReadByHand => "our scripts by hand, a reader",
        Subject::PermitByHand => "our scripts by hand, a permit",
        Subject::Leasehold => "leasehold",
        Subject::Read => "leasehold, a reader",
        Subject::Permit => "leasehold, a permit",
        Subject::Chain0 => "leasehold, chain 0",
        Subject::Pool => "leasehold, pool",
        Subject::SixteenthHeld => "leasehold, 1 in 16 held",
        Subject::OneReplica => "leasehold, replicas=1",
        Subject::TwoReplicas => "leasehold, replicas=2",
        Subject::Dwell => "leasehold, failover=dwell",
        Subject::Rslock => "rslock",
        Subject::RslockEager => "rslock, 10 ms",
    }
}

/// The head of a column of ratios to a subject.
pub(crate) fn to(base: Subject) -> &'static str {
    match base {
        Subject::Bare => "to bare",
        Subject::ByHand => "to by hand",
        Subject::ReadByHand | Subject::PermitByHand => "to the same by hand",
        Subject::Leasehold => "to leasehold",
        Subject::Read => "to a reader",
        Subject::Permit => "to a permit",
        Subject::Chain0 => "to chain 0",
        Subject::Pool => "to a pool",
        Subject::SixteenthHeld => "to 1 in 16 held",
        Subject::OneReplica | Subject::TwoReplicas => "to a replicated one",
        Subject::Dwell => "to dwell",
        Subject::Rslock | Subject::RslockEager => "to rslock",
    }
}
