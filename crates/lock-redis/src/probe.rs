//! Whether two ways lead to the same database. No I/O.

use lock_core::Operation;
use redis::Value;

use crate::failure::Failure;
use crate::wire::{Call, Line, Question, read};

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
    pub(crate) fn leave(&self) -> Leave<'_> {
        Leave(&self.0)
    }

    /// Deletes the key, and returns whether it was there.
    pub(crate) fn take(&self) -> Take<'_> {
        Take(&self.0)
    }
}

pub(crate) struct Leave<'a>(&'a str);

impl Question for Leave<'_> {
    type Answer = ();

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        let mut set = redis::cmd("SET");
        set.arg(self.0).arg(1).arg("PX").arg(LIFE);
        Ok(Call::plain(set))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<(), Failure> {
        read(reply)
    }
}

pub(crate) struct Take<'a>(&'a str);

impl Question for Take<'_> {
    type Answer = ();

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.0);
        Ok(Call::plain(delete))
    }

    fn read(&self, Line { wire, .. }: Line<'_>, reply: Value) -> Result<(), Failure> {
        match read::<i64>(reply)? {
            1 => Ok(()),
            _ => Err(Failure::elsewhere(&wire.server)),
        }
    }
}
