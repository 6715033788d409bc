//! What a case needs from a store and its harness.

use std::fmt;

use lock_core::{Ability, ModeKind};

use crate::fault::Fault;

/// What a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing that a store may lack.
    Nothing,
    /// That the harness can do this to the store.
    Fault(Fault),
    /// That the store keeps a queue.
    Queue,
    /// That entries end with their ttl, as the store's capabilities say, and not with the session of their client. A harness need not list
    /// that.
    OwnTtl,
    /// The view for operators.
    Inspect,
    /// Latches.
    Latch,
    /// That other processes reach the store.
    Processes,
    /// That the store's capabilities include this. A harness need not list what they do not include.
    Ability(Ability),
    /// That the store's capabilities include this mode. A harness need not list those that they do not include. A store that
    /// grants anything but exclusive leases keeps a queue.
    Mode(ModeKind),
    /// That the mutex of a name is the write side of its read-write lock, as the store's capabilities say. A harness need not list that.
    MutexIsWriteSide,
}

impl Need {
    /// Everything that may be absent, and is then listed with a reason.
    pub const ALL: [Self; 9] = [
        Self::Fault(Fault::Cut),
        Self::Fault(Fault::Hang),
        Self::Fault(Fault::LoseReplies),
        Self::Fault(Fault::RestartWithData),
        Self::Fault(Fault::RestartEmpty),
        Self::Queue,
        Self::Inspect,
        Self::Latch,
        Self::Processes,
    ];
}

/// A part of the suite that does not apply, and why.
#[derive(Clone, Copy, Debug)]
pub struct Exemption {
    /// What is absent.
    pub need: Need,
    /// Why, as text for display.
    pub reason: &'static str,
}

impl Exemption {
    /// What is absent, and why.
    pub const fn new(need: Need, reason: &'static str) -> Self {
        Self { need, reason }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Queue => f.write_str("a queue"),
            Self::OwnTtl => f.write_str("entries that end with their ttl"),
            Self::Inspect => f.write_str("a view for operators"),
            Self::Latch => f.write_str("latches"),
            Self::Processes => f.write_str("a store shared between processes"),
            Self::Ability(ability) => write!(f, "the ability {ability:?}"),
            Self::MutexIsWriteSide => f.write_str("a mutex that is the write side of its read-write lock"),
            Self::Mode(mode) => write!(f, "the mode {mode}"),
        }
    }
}
