//! The limit of a semaphore.

use lock_core::limit::{Act, Record, Request, Usage};
use lock_core::{BackendError, Limit, Mode, Operation};

use crate::plan::Plan;
use crate::refusal::Undone;
use crate::rows::{Rows, Write};

/// Sets the limit of a semaphore and serves the waiters that fit under it, or looks at the semaphore. Waiters that ask for more
/// permits than a new limit lose their places, and are told to ask, which is refused with the reason.
///
/// # Errors
/// `OtherKind` if the name is in use as a lock; for a look, also as a semaphore of another limit. Those of the rows. Then
/// nothing was changed.
pub fn limit<R: Rows>(rows: &mut R, request: &Request) -> Result<Usage, Undone<R::Error>> {
    let mut plan = Plan::new(rows, &request.name)?;
    let used_as = plan.mode()?;
    if let Some(lock) = used_as.filter(|used| used.limit().is_none()) {
        return Err(refused::<R>(lock, request));
    }
    let (record, in_use) = (plan.rows.limit()?, used_as.and_then(Mode::limit));
    let limit = match request.act {
        Act::Look => {
            return Ok(Usage { limit: in_force::<R>(record.as_ref(), in_use, request)?, used: plan.permits() });
        }
        Act::Set(limit) => limit,
    };
    plan.put_in_force(limit, Record::of(limit, in_use, request.known, record.as_ref()))?;
    let used = plan.permits();
    plan.end()?;
    Ok(Usage { limit, used })
}

/// The limit in force, if a request that knows its own limit is served under it.
fn in_force<R: Rows>(
    record: Option<&Record>,
    in_use: Option<Limit>,
    request: &Request,
) -> Result<Limit, Undone<R::Error>> {
    let known = request.known;
    let limit = record.map(Record::limit).or(in_use).unwrap_or(known);
    let is_served = record.map_or(known == limit, |record| record.serves(known));
    if is_served { Ok(limit) } else { Err(refused::<R>(Mode::one_permit(limit), request)) }
}

fn refused<R: Rows>(used: Mode, request: &Request) -> Undone<R::Error> {
    let asked = Mode::one_permit(request.known);
    Undone::Refused(BackendError::in_other_use(R::BACKEND, used, asked).of_operation(Operation::Limit))
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
