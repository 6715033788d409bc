//! The end of a lease by an operator, and who did it. No I/O.

use std::ops::ControlFlow;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::{FencingToken, LockName, Note, Operation};
use redis::Value;

use crate::failure::Failure;
use crate::script;
use crate::wire::{Call, Line, Question, read, to_millis};

/// Ends the lease that spans a token. Among many leases it is searched in steps, so that no step keeps other clients waiting.
#[derive(Clone, Copy)]
pub(crate) struct Revocation<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) token: FencingToken,
    pub(crate) by: &'a Note,
    /// Where this step of the search begins.
    pub(crate) cursor: u64,
}

impl Question for Revocation<'_> {
    /// The answer, or where the next step begins.
    type Answer = ControlFlow<Revoked, u64>;

    fn operation(&self) -> Operation {
        Operation::Inspect
    }

    fn call(&self, Line { wire, server_info, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = wire.keys(self.name);
        let scope = keys.scope();
        let keys = [keys.counter(), server_info.failover.key(scope), keys.lock(), keys.queue(), keys.waiters()];
        let call = Call::counting(script::REVOKE.counting(server_info.counting), scope, &keys);
        Ok(call.arg(self.token.get()).arg(self.by.to_wire()).arg(to_millis(REMEMBERED_MIN)).arg(self.cursor))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Self::Answer, Failure> {
        let Value::Int(ended) = reply else { return Ok(ControlFlow::Continue(read(reply)?)) };
        Ok(ControlFlow::Break(if ended == 0 { Revoked::NotHeld } else { Revoked::Revoked }))
    }
}

/// Who ended the lease whose highest token this is.
pub(crate) struct RevokedBy<'a>(pub(crate) &'a LockName, pub(crate) FencingToken);

impl Question for RevokedBy<'_> {
    type Answer = Option<Note>;

    fn operation(&self) -> Operation {
        Operation::Inspect
    }

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let mut get = redis::cmd("GET");
        get.arg(wire.keys(self.0).revocation(self.1));
        Ok(Call::plain(get))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Option<Note>, Failure> {
        Ok(read::<Option<Vec<u8>>>(reply)?.map(|note| note_of(&note)))
    }
}

/// A note as it was stored.
pub(crate) fn note_of(stored: &[u8]) -> Note {
    Note::from_wire(&String::from_utf8_lossy(stored))
}
