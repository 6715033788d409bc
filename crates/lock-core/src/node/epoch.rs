//! Epochs: lifetimes of a node's memory.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// One lifetime of a node's memory: drawn at random when a client finds that the node has forgotten, and kept until it
/// forgets again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch with this random number.
    pub const fn from_random(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({self})")
    }
}

impl FromStr for Epoch {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = |_| Invalid::new("epoch", text, "it is not hexadecimal", "pass on what the node holds");
        u64::from_str_radix(text, 16).map(Self).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_comes_back_from_the_wire() {
        let epoch = Epoch::from_random(0xbeef);
        assert_eq!(epoch.to_string(), "000000000000beef");
        assert_eq!(epoch.to_string().parse::<Epoch>().unwrap(), epoch);
        assert!("x".parse::<Epoch>().is_err());
    }
}
