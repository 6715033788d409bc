//! One attempt at the lock.

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// No node has granted yet.
    Idle,
    /// At least one node has granted.
    Asking,
    /// It has chosen this token and sends it to all nodes.
    Fencing(u8),
    /// It was handed out with this token.
    Out(u8),
}

/// A client. One that tries again has a new identity, and so is another client to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// How far it has come.
    pub stage: Stage,
    /// The highest token that was handed out before it began.
    pub after: u8,
    /// How many crashes there had been when it began.
    pub began: u8,
}

impl Client {
    pub(crate) const IDLE: Self = Self { stage: Stage::Idle, after: 0, began: 0 };

    /// The token that it was handed out with.
    pub fn handed_out(&self) -> Option<u8> {
        match self.stage {
            Stage::Out(token) => Some(token),
            Stage::Idle | Stage::Asking | Stage::Fencing(_) => None,
        }
    }

    /// The token that it tells the nodes.
    pub fn token(&self) -> Option<u8> {
        match self.stage {
            Stage::Fencing(token) | Stage::Out(token) => Some(token),
            Stage::Idle | Stage::Asking => None,
        }
    }
}
