//! What a case needs of a store and its harness, and what is done where it is absent.

use std::fmt;

use lock_core::{Capabilities, Durability, Released, Waiting};

use crate::verbs::{claim, waiting_claim};
use crate::{Bench, Fault};

/// Which face, and which colour of the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Tokio.
    Nonblocking,
    /// Plain threads.
    Blocking,
}

impl Colour {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Nonblocking => Self::Blocking,
            Self::Blocking => Self::Nonblocking,
        }
    }
}

/// What a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing that a store may lack.
    Nothing,
    /// That the harness can do this to the store.
    Fault(Fault),
    /// That the store keeps a queue.
    Queue,
    /// The view for operators.
    Inspect,
    /// That other processes reach the store.
    Processes,
}

impl Need {
    /// Everything that may be absent.
    pub const ALL: [Self; 8] = [
        Self::Fault(Fault::Cut),
        Self::Fault(Fault::Hang),
        Self::Fault(Fault::LoseReplies),
        Self::Fault(Fault::RestartWithData),
        Self::Fault(Fault::RestartEmpty),
        Self::Queue,
        Self::Inspect,
        Self::Processes,
    ];

    pub(crate) fn is_met(self, bench: &Bench) -> bool {
        match self {
            Self::Nothing => true,
            Self::Fault(fault) => bench.faults().offers().contains(&fault),
            Self::Queue => keeps_a_queue(bench.capabilities()),
            Self::Inspect => bench.verbs().can_inspect(),
            Self::Processes => bench.has_address(),
        }
    }

    /// Shows that what is said to be absent is not there by another name.
    pub(crate) fn check_absence(self, bench: &Bench) {
        match self {
            Self::Queue => a_wish_for_a_place_leaves_none(bench),
            Self::Processes | Self::Fault(Fault::RestartWithData) => ends_with_its_process(bench),
            // Its absence was seen, or it is the harness that cannot do it, as its list says.
            Self::Nothing | Self::Inspect | Self::Fault(_) => {}
        }
    }
}

pub(crate) fn keeps_a_queue(capabilities: Capabilities) -> bool {
    matches!(capabilities.waiting, Waiting::QueueWithPush | Waiting::Queue)
}

fn a_wish_for_a_place_leaves_none(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let held = claim("a");
    one.take(&held);
    two.refused(&waiting_claim("a"));
    assert_eq!(one.release(&held), Released::Released);
    three.take(&claim("a"));
}

fn ends_with_its_process(bench: &Bench) {
    let durability = bench.capabilities().durability;
    assert_eq!(durability, Durability::Process, "a store that outlives its process can be shared and restarted");
}

/// Something of the suite that does not apply, and why.
#[derive(Clone, Copy, Debug)]
pub struct Exemption {
    /// What is absent.
    pub need: Need,
    /// Why; for people.
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
            Self::Inspect => f.write_str("a view for operators"),
            Self::Processes => f.write_str("a store shared between processes"),
        }
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nonblocking => "nonblocking",
            Self::Blocking => "blocking",
        })
    }
}
