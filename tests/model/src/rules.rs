//! What is explored: the form of the protocol, and how much may happen.

use clap::ValueEnum;

/// When a client is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rounds {
    /// Broken: as soon as a majority has granted. No node is told the token.
    One,
    /// When a majority has acknowledged the token.
    Two,
    /// As with two, but a grant of just the token counts as an acknowledgement. Clients propose what to grant.
    Fast,
}

impl Rounds {
    /// What clients may propose. A node may take less, so each grant has a choice of its own.
    pub(crate) fn proposals(self) -> &'static [u8] {
        match self {
            Self::One | Self::Two => &[0],
            Self::Fast => &[0, 2],
        }
    }

    /// Whether a grant counts as an acknowledgement of a token.
    pub(crate) fn count(self, grant: u8, token: u8) -> bool {
        match self {
            Self::One => grant <= token,
            Self::Two => false,
            Self::Fast => grant == token,
        }
    }
}

/// What a node compares with a token that it is to acknowledge. In any form the client must still own the lock there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// Broken: nothing, as first proposed.
    Nothing,
    /// Broken: its counter, which grants of other locks raise.
    Counter,
    /// What it had answered with its grant.
    Grant,
}

/// What a node does that forgot everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Guard {
    /// Broken: it continues.
    Nothing,
    /// Broken: it abstains for its dwell, and all keys from before are gone then.
    Abstain,
    /// Broken: the same, and then it takes over the highest counter of so many others that each majority has one of
    /// them or itself.
    Recover,
    /// It abstains and takes over a counter; and clients that began before the crash are not handed out after the
    /// dwell. Keys from before may have been renewed and still be there.
    Complete,
}

/// The form of the protocol. By default it is the one that is built, without the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When a client is handed out.
    pub rounds: Rounds,
    /// What makes a node refuse a token.
    pub check: Check,
    /// What a node does that forgot everything.
    pub guard: Guard,
}

impl Default for Rules {
    fn default() -> Self {
        Self { rounds: Rounds::Two, check: Check::Grant, guard: Guard::Complete }
    }
}

/// How often external events happen. Nothing bounds how often keys vanish and how late messages arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Grants of other locks, on all nodes together.
    pub foreign: u8,
    /// Nodes that forget everything.
    pub crashes: u8,
    /// Acquires that a node receives twice.
    pub duplicates: u8,
}
