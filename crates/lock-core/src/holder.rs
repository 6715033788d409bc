//! The holder of a lock, as others see it.

use std::fmt;

use crate::{Note, TokenRange};

/// The holder of a lock, as far as the store can tell. For display; it carries no authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A holder that uses this library.
    Leasehold {
        /// The tokens of its lease.
        tokens: TokenRange,
        /// What it says about itself.
        note: Note,
    },
    /// A holder that does not use this library, with a lock in a layout that the backend respects.
    Foreign,
}

impl Holder {
    /// The tokens of its lease; `None` of a holder that does not use this library.
    pub fn tokens(&self) -> Option<TokenRange> {
        match self {
            Self::Leasehold { tokens, .. } => Some(*tokens),
            Self::Foreign => None,
        }
    }

    /// Describes who is in the way of a claim, as a part of a sentence. A store names a holder whatever the reason is; the
    /// reason may be that others wait before.
    pub fn obstacle(holder: Option<&Self>) -> String {
        match holder {
            Some(Self::Foreign) => format!("{} holds it", Self::Foreign),
            Some(holder @ Self::Leasehold { .. }) => format!("{holder} holds it or waits before you"),
            None => "somebody holds it or waits before you".to_owned(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leasehold { note, .. } => note.fmt(f),
            Self::Foreign => f.write_str("something other than leasehold"),
        }
    }
}
