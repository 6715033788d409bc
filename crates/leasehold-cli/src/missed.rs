//! The slots of a schedule that nobody has run.

use std::collections::VecDeque;

use leasehold::kit::{First, FirstMark, Mark, Slot};
use lock_core::LockName;

use crate::job::Job;
use crate::locks::Locks;
use crate::wish::Wish;

/// The earlier slots of a job that nobody has run, oldest first, as far as the store answers.
pub(crate) fn missed(locks: &Locks, wish: &Wish) -> Vec<Slot> {
    let Wish { name, job: Job { earlier, marked, .. }, .. } = wish;
    let (Some((this, _)), false) = (marked, earlier.is_empty()) else { return Vec::new() };
    let (mut missed, mut ran) = (VecDeque::new(), None);
    for (slot, mark) in earlier {
        match locks.holder(mark) {
            Ok(None) => missed.push_front(*slot),
            Ok(Some(_)) => {
                ran = Some(*slot);
                break;
            }
            Err(_) => return missed.into(),
        }
    }
    match first(locks, name, ran, *this) {
        Some(first) => first.after(missed.into()),
        None => missed.into(),
    }
}

/// The first slot that the job has run, as far as the store answers, which goes on to remember it.
fn first(locks: &Locks, job: &LockName, ran: Option<Slot>, this: Slot) -> Option<First> {
    let Mark { name, keep } = Mark::of_first(job.as_str());
    let name: LockName = name.parse().ok()?;
    let first = First::of(locks.holder(&name).ok()?.as_ref(), ran, this)?;
    match first.mark() {
        FirstMark::Lasts => return Some(first),
        FirstMark::Missing => {}
        // If it is not ended, it cannot be set; the next run tries that again.
        FirstMark::Wanes(token) => _ = locks.revoke(&name, token, First::AGAIN_WHY),
    }
    if let Ok(Some(guard)) = locks.client().mutex(name.as_str()).why(first.why()).try_acquire() {
        _ = guard.release_keeping(keep);
    }
    Some(first)
}
