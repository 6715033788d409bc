//! The limit of a semaphore.

use lock_core::limit::{Act, Record, Request, Usage};
use lock_core::{BackendError, Limit, Mode, Operation};

use crate::plan::Plan;
use crate::refusal::Undone;
use crate::rows::{Rows, Write};

/// Sets the limit of a semaphore and serves the waiters that fit under it, or looks at the semaphore. Waiters that ask for more
/// permits than a new limit lose their places, and are notified to ask, which is refused with the reason.
///
/// # Errors
/// `OtherKind` if the name is in use as a lock; for a look, also as a semaphore of another limit. Those of the rows. Then
/// nothing was changed.
pub fn limit<R: Rows>(rows: &mut R, request: &Request) -> Result<Usage, Undone<R::Error>> {
    let mut plan = Plan::new(rows, &request.name)?;
    let (used_as, record) = (plan.mode()?, plan.rows.limit()?);
    let limit = limit_after(R::BACKEND, record.as_ref(), used_as, request).map_err(Undone::Refused)?;
    if request.act != Act::Look {
        let in_use = used_as.and_then(Mode::limit);
        plan.put_in_force(limit, Record::of(limit, in_use, request.known, record.as_ref()))?;
    }
    let used = plan.permits();
    plan.end()?;
    Ok(Usage { limit, used })
}

/// The limit in force once a request is carried out, if the name is used as this and this limit was set before.
///
/// # Errors
/// `OtherKind` as for [`limit()`].
pub fn limit_after(
    backend: &'static str,
    record: Option<&Record>,
    used_as: Option<Mode>,
    request: &Request,
) -> Result<Limit, BackendError> {
    let (known, in_use) = (request.known, used_as.and_then(Mode::limit));
    let in_force = record.map(Record::limit).or(in_use).unwrap_or(known);
    let is_served = record.map_or(known == in_force, |record| record.serves(known));
    let refused =
        |used| BackendError::in_other_use(backend, used, Mode::one_permit(known)).of_operation(Operation::Limit);
    if let Some(lock) = used_as.filter(|used| used.limit().is_none()) {
        return Err(refused(lock));
    }
    match request.act {
        Act::Set(limit) => Ok(limit),
        Act::Look if is_served => Ok(in_force),
        Act::Look => Err(refused(Mode::one_permit(in_force))),
    }
}

impl<R: Rows> Plan<'_, R> {
    fn put_in_force(&mut self, limit: Limit, record: Record) -> Result<(), R::Error> {
        for place in self.rows.queued_above(limit.get())? {
            self.write(Write::Leave(place.owner));
            self.tell_to_ask(place.client);
        }
        self.write(Write::Limit(record, self.now + Record::KEPT_FOR));
        self.set_limit(limit);
        self.serve(None)
    }
}
