//! The account: a balance, and the highest fencing token that it has seen.

use leasehold::FencingToken;

use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::raw::{Fence, Raw};

/// The keys of the account with this number.
pub(crate) fn keys(number: u32) -> [String; 2] {
    [format!("balance:{number}"), format!("token:{number}")]
}

/// The account in its store. It has no lock: each request is atomic, but two requests are not.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) balance: String,
    pub(crate) highest_token: String,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It counts.
    Accepted,
    /// It was too late: a higher token had been used.
    Refused,
}

impl Written {
    fn if_accepted(accepted: bool) -> Self {
        if accepted { Self::Accepted } else { Self::Refused }
    }
}

impl Account {
    /// The account with this number.
    pub(crate) fn at(ground: &Ground, number: u32) -> Self {
        let [balance, highest_token] = keys(number).map(|key| ground.key(&key));
        Self { balance, highest_token }
    }

    /// What is in it.
    pub(crate) fn read(&self, raw: &mut dyn Raw) -> Result<u64, Failure> {
        Ok(raw.get(&self.balance)?.unwrap_or(0))
    }

    /// Sets the balance unconditionally.
    pub(crate) fn write(&self, raw: &mut dyn Raw, balance: u64) -> Result<Written, Failure> {
        raw.set(&self.balance, balance).map(|()| Written::Accepted)
    }

    /// Raises the fence to this token, unless a higher one has been used.
    pub(crate) fn raise(&self, raw: &mut dyn Raw, token: FencingToken) -> Result<Written, Failure> {
        raw.raise(self.fence(token)).map(Written::if_accepted)
    }

    /// Sets the balance, unless a higher token has been used.
    pub(crate) fn write_fenced(
        &self,
        raw: &mut dyn Raw,
        balance: u64,
        token: FencingToken,
    ) -> Result<Written, Failure> {
        raw.set_fenced(&self.balance, balance, self.fence(token)).map(Written::if_accepted)
    }

    fn fence(&self, token: FencingToken) -> Fence<'_> {
        Fence { key: &self.highest_token, token }
    }
}
