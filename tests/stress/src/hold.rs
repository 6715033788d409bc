//! What a turn holds: a lock as its writer or one of its readers, or permits with numbers.

use std::fmt;
use std::str::FromStr;

/// What a guard holds, with its fencing tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The lock, alone.
    Write(u64),
    /// The lock, beside other readers.
    Read(u64),
    /// Permits: each slot with its token.
    Permits(Vec<(u32, u64)>),
}

/// A piece of a lock that has tokens of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    /// All of it.
    All,
    /// That of the readers.
    Readers,
    /// One slot.
    Slot(u32),
}

impl Piece {
    /// Whether two turns that have these pieces must not overlap, and whether the later one must have the higher token.
    pub(crate) fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Readers, Self::Readers) => false,
            (Self::Slot(one), Self::Slot(other)) => one == other,
            (Self::All, _) | (_, Self::All) | (Self::Readers, Self::Slot(_)) | (Self::Slot(_), Self::Readers) => true,
        }
    }
}

impl Hold {
    /// The pieces of the lock, each with its token.
    pub(crate) fn pieces(&self) -> Vec<(Piece, u64)> {
        match self {
            Self::Write(token) => vec![(Piece::All, *token)],
            Self::Read(token) => vec![(Piece::Readers, *token)],
            Self::Permits(slots) => slots.iter().map(|(slot, token)| (Piece::Slot(*slot), *token)).collect(),
        }
    }

    /// One of the tokens: all are drawn at once.
    pub(crate) fn token(&self) -> u64 {
        self.pieces().first().map_or(0, |(_, token)| *token)
    }

    /// The same with slots that are not below the limit.
    pub(crate) fn beyond(self, limit: u32) -> Self {
        match self {
            Self::Write(_) | Self::Read(_) => self,
            Self::Permits(slots) => {
                Self::Permits(slots.into_iter().map(|(slot, token)| (slot + limit, token)).collect())
            }
        }
    }

    /// What may be written: the resources, each with the token that a write brings. A reader writes nothing.
    pub(crate) fn resources(&self, lock: &str) -> Vec<(String, u64)> {
        match self {
            Self::Write(token) => vec![(lock.to_owned(), *token)],
            Self::Read(_) => Vec::new(),
            Self::Permits(slots) => slots.iter().map(|(slot, token)| (format!("{lock}#{slot}"), *token)).collect(),
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(token) => write!(f, "has {token}"),
            Self::Read(token) => write!(f, "reads {token}"),
            Self::Permits(slots) => {
                let slots: Vec<_> = slots.iter().map(|(slot, token)| format!("{slot}:{token}")).collect();
                write!(f, "permits {}", slots.join(","))
            }
        }
    }
}

/// A text that is not a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAHold;

impl FromStr for Hold {
    type Err = NotAHold;

    fn from_str(text: &str) -> Result<Self, NotAHold> {
        parse(text).ok_or(NotAHold)
    }
}

fn parse(text: &str) -> Option<Hold> {
    match text.split_once(' ')? {
        ("has", token) => Some(Hold::Write(token.parse().ok()?)),
        ("reads", token) => Some(Hold::Read(token.parse().ok()?)),
        ("permits", slots) => Some(Hold::Permits(slots.split(',').map(numbered).collect::<Option<_>>()?)),
        _ => None,
    }
}

fn numbered(text: &str) -> Option<(u32, u64)> {
    let (slot, token) = text.split_once(':')?;
    Some((slot.parse().ok()?, token.parse().ok()?))
}
