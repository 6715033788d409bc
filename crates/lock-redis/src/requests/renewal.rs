//! The question that renews leases, and the meaning of its answer. No I/O.

use lock_core::{Lease, Mode, Operation, Renewed};
use redis::Value;

use super::revocation::note_of;
use super::value::{of_lease, of_shared_lease};
use crate::failure::Failure;
use crate::keys::Key;
use crate::script;
use crate::wire::{Call, Line, Question, Retry, read};

/// Renews a few leases: [`Wire::locks_per_script`](crate::wire::Wire::locks_per_script) at most.
pub(crate) struct Renewal<'a>(pub(crate) &'a [Lease]);

impl Renewal<'_> {
    fn are_exclusive(&self) -> bool {
        self.0.iter().all(|lease| lease.terms.mode == Mode::Exclusive)
    }
}

impl Question for Renewal<'_> {
    type Answer = Vec<Renewed>;
    const OPERATION: Operation = Operation::Renew;
    const RETRY: Retry = Retry::Once;

    fn call(&self, Line { wire, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = self.0.iter().map(|lease| wire.keys(&lease.name));
        let mut of_locks: Vec<_> = keys.clone().map(Key::Lock).collect();
        let script = if self.are_exclusive() {
            &script::RENEW
        } else {
            of_locks.extend(keys.map(Key::Waiters));
            &script::RENEW_ANY
        };
        let named = |lease: &Lease| {
            if lease.terms.mode == Mode::Exclusive { of_lease(lease) } else { of_shared_lease(lease) }
        };
        let lead = self.0.first().map(|lease| Key::Lead(wire.keys(&lease.name)));
        let call = Call::script(script, &of_locks).arg(self.0.len()).arg(lead);
        let call = self.0.iter().fold(call, |call, lease| call.arg(named(lease)));
        let mut last = 0;
        Ok(self.0.chunk_by(|one, next| one.terms.ttl == next.terms.ttl).fold(call, |call, alike| {
            last += alike.len();
            call.arg(alike[0].terms.ttl.as_millis()).arg(last)
        }))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Vec<Renewed>, Failure> {
        let renewed = |lease: &Lease, wanted| Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted };
        if !self.are_exclusive() {
            let words: Vec<(u8, Option<Vec<u8>>)> = read(reply)?;
            let answer = |((word, by), lease)| if word == 0 { gone(by) } else { renewed(lease, word == 2) };
            let answers: Vec<_> = words.into_iter().zip(self.0).map(answer).collect();
            return Some(answers).filter(|all| all.len() == self.0.len()).ok_or_else(Failure::strange_answer);
        }
        let lost: Vec<(usize, Option<Vec<u8>>)> = read(reply)?;
        let mut answers: Vec<_> = self.0.iter().map(|lease| renewed(lease, false)).collect();
        for (number, by) in lost {
            *number.checked_sub(1).and_then(|index| answers.get_mut(index)).ok_or_else(Failure::strange_answer)? =
                gone(by);
        }
        Ok(answers)
    }

    fn gives(&self, answer: Option<&Vec<Renewed>>) -> bool {
        answer.is_none_or(|all| all.iter().any(|renewed| matches!(renewed, Renewed::Renewed { .. })))
    }
}

/// The answer for a lease that is lost.
fn gone(revoked_by: Option<Vec<u8>>) -> Renewed {
    revoked_by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by: note_of(&by) })
}
