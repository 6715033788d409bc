//! Whether two ways lead to the same database. No I/O.

use lock_core::Operation;

use crate::failure::Failure;
use crate::requests::simple::Simple;
use crate::wire::{Line, Retry, read};

/// How long a key lives if it is not found, in milliseconds.
const LIFE: u64 = 10_000;

/// A key that one way writes and the other way deletes.
pub(crate) struct Probe(String);

impl Probe {
    /// A key that nobody else uses.
    pub(crate) fn new() -> Result<Self, Failure> {
        let random = lock_host::new_owner().map_err(|_| Failure::unsupported("the system's random source failed"))?;
        Ok(Self(format!("leasehold:probe:{}", random.to_wire())))
    }

    /// Writes the key.
    pub(crate) fn leave(&self) -> Simple<()> {
        let mut set = redis::cmd("SET");
        set.arg(&self.0).arg(1).arg("PX").arg(LIFE);
        Simple::new(Operation::Connect, Retry::Never, set, |_line, reply| read(reply))
    }

    /// Deletes the key, which has to be there.
    pub(crate) fn take(&self) -> Simple<()> {
        let mut delete = redis::cmd("DEL");
        delete.arg(&self.0);
        Simple::new(Operation::Connect, Retry::Never, delete, |Line { wire, .. }, reply| match read::<i64>(reply)? {
            1 => Ok(()),
            _ => Err(Failure::elsewhere(&wire.server)),
        })
    }
}
