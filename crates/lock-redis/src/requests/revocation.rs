//! The end of a lease by an operator, and who did it. No I/O.

use std::ops::ControlFlow;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::{Effect, ErrorKind, FencingToken, LockName, Note, to_the_millisecond};
use redis::Value;

use crate::failure::Failure;
use crate::keys::Key;
use crate::script;
use crate::span::Span;
use crate::wire::{Call, Line, Question, read, to_millis};

/// Ends the lease that spans a token. Among many leases it is searched in steps, so that no step keeps other clients waiting.
pub(crate) struct Revocation<'a> {
    name: &'a LockName,
    token: FencingToken,
    by: &'a Note,
    position: Option<Position>,
}

/// Where the next step of a search begins, in this incarnation of the server: another one has another order.
pub(crate) struct Position {
    cursor: u64,
    incarnation: String,
}

impl<'a> Revocation<'a> {
    pub(crate) const fn new(name: &'a LockName, token: FencingToken, by: &'a Note) -> Self {
        Self { name, token, by, position: None }
    }

    /// The answer, if a step has it. Otherwise the next step is to be asked, for which there has to be time.
    pub(crate) fn after(
        &mut self,
        step: ControlFlow<Revoked, Position>,
        span: Span,
    ) -> Result<Option<Revoked>, Failure> {
        match step {
            ControlFlow::Break(revoked) => return Ok(Some(revoked)),
            ControlFlow::Continue(position) => self.position = Some(position),
        }
        if span.left().is_zero() {
            let message = format!("the lease was not found among many within {:?}", to_the_millisecond(span.within));
            return Err(Failure::new(ErrorKind::Timeout, Effect::Unknown, message).remedy("allow more time"));
        }
        Ok(None)
    }
}

impl Question for Revocation<'_> {
    /// The answer, or where the next step begins.
    type Answer = ControlFlow<Revoked, Position>;

    fn call(&self, Line { wire, server_info, .. }: Line<'_>) -> Result<Call, Failure> {
        let is_here = |position: &&Position| position.incarnation == server_info.incarnation();
        let cursor = self.position.as_ref().filter(is_here).map_or(0, |position| position.cursor);
        let keys = wire.keys(self.name);
        let call = Call::drawing(&script::REVOKE, server_info, keys, &[Key::Queue(keys), Key::Waiters(keys)]);
        Ok(call.arg(self.token.get()).arg(self.by.to_wire()).arg(to_millis(REMEMBERED_MIN)).arg(cursor))
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<Self::Answer, Failure> {
        let Value::Int(ended) = reply else {
            let (cursor, incarnation) = (read(reply)?, line.server_info.incarnation());
            return Ok(ControlFlow::Continue(Position { cursor, incarnation }));
        };
        Ok(ControlFlow::Break(if ended == 0 { Revoked::NotHeld } else { Revoked::Revoked }))
    }
}

/// Who ended the lease whose highest token this is.
pub(crate) struct RevokedBy<'a>(pub(crate) &'a LockName, pub(crate) FencingToken);

impl Question for RevokedBy<'_> {
    type Answer = Option<Note>;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let mut get = redis::cmd("GET");
        get.arg(Key::Revocation(wire.keys(self.0), self.1));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::Operation;

    use super::*;
    use crate::server::server_info::ServerInfo;
    use crate::wire::{Attempt, Wire};

    /// Two incarnations keep their leases in different orders: after the cursor of another one, a lease may be missed.
    #[test]
    fn a_search_begins_again_at_another_incarnation_and_ends_in_time() {
        let wire = Wire::handed_in();
        let [here, elsewhere] =
            ["1", "2"].map(|run_id| ServerInfo { run_id: run_id.to_owned(), ..ServerInfo::UNKNOWN.clone() });
        let at = |server_info| Line { wire: &wire, server_info, attempt: Attempt::default() };
        let (name, by) = ("a".parse().unwrap(), Note::from_wire("1@ops"));
        let mut search = Revocation::new(&name, FencingToken::new(7).unwrap(), &by);
        let step = search.read(at(&here), Value::BulkString(b"42".to_vec())).ok().unwrap();
        assert!(matches!(search.after(step, Span::from_now(Duration::from_secs(60))), Ok(None)));
        for (server_info, cursor) in [(&here, b"42".as_slice()), (&elsewhere, b"0")] {
            assert_eq!(search.call(at(server_info)).ok().unwrap().parts().last(), Some(cursor));
        }
        let step = search.read(at(&here), Value::BulkString(b"43".to_vec())).ok().unwrap();
        let failure = search.after(step, Span::from_now(Duration::ZERO)).expect_err("there is no time");
        let error = failure.into_error(Operation::Inspect);
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        let step = search.read(at(&here), Value::Int(1)).ok().unwrap();
        assert!(matches!(search.after(step, Span::from_now(Duration::ZERO)), Ok(Some(Revoked::Revoked))));
    }
}
