//! What a turn asks of the register.

use std::fmt;
use std::str::FromStr;

/// To read the number of a resource, or to write it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The resource.
    pub resource: String,
    /// The token of the turn.
    pub token: u64,
    /// For a write, what the turn has read: the new number is one higher.
    pub base: Option<u64>,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.token)?;
        self.base.map_or(Ok(()), |base| write!(f, " {base}"))
    }
}

/// A text that is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAsk;

impl FromStr for Ask {
    type Err = NotAnAsk;

    fn from_str(text: &str) -> Result<Self, NotAnAsk> {
        parse(text).ok_or(NotAnAsk)
    }
}

fn parse(text: &str) -> Option<Ask> {
    let mut words = text.splitn(3, ' ');
    let (resource, token) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let base = words.next().map(str::parse).transpose().ok()?;
    Some(Ask { resource, token, base })
}
