//! How old a lease is shown to be.

use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{Lease, Mode, Moment, Released, Renewed};

use crate::absence::keeps_a_queue;
use crate::verbs::{claim, in_mode, replacing, waiting_claim};
use crate::{Bench, Verbs};

/// How old the leases get.
const AGE: Duration = Duration::from_secs(4);
/// By how much an age may differ: a store may keep whole seconds, by a clock that is not that of the bench.
const ROUNDING: Duration = Duration::from_millis(1500);

/// A name, and a mode in which the store grants it.
type Kind = (&'static str, Mode);

fn kinds(verbs: &Verbs) -> Vec<Kind> {
    let kinds = [("a", Mode::Exclusive), ("b", Mode::Shared), ("c", Mode::permits(2, 2).unwrap())];
    let modes = verbs.capabilities().modes;
    kinds.into_iter().filter(|(_, mode)| modes.contains(&mode.kind())).collect()
}

/// Since when a lease is held: a moment before its grant, and one after it.
fn since(bench: &Bench, grant: impl FnOnce() -> Lease) -> (Lease, [Moment; 2]) {
    let before = bench.now();
    let lease = grant();
    (lease, [before, bench.now()])
}

/// The age of the lease that ends last.
fn of_holder(entry: &Entry) -> Option<Duration> {
    entry.holders.first().and_then(|held| held.age)
}

#[track_caller]
fn expect_age(
    bench: &Bench,
    verbs: &Verbs,
    name: &str,
    [before, after]: [Moment; 2],
    age: impl Fn(&Entry) -> Option<Duration>,
) {
    let asked = bench.now();
    let entry = verbs.holder(name).expect("it is held");
    let age = age(&entry).expect("its age is known");
    let (least, most) = (asked.since(after), bench.now().since(before));
    assert!(age + ROUNDING >= least && age <= most + ROUNDING, "{name}: {age:?} is not between {least:?} and {most:?}");
}

/// A waiter is as old as the claim that took its place, however often it has asked since.
pub fn a_waiter_is_as_old_as_its_first_claim(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let waiters = kinds(&one).into_iter().map(|(name, mode)| {
        one.take(&in_mode(if mode == Mode::Shared { Mode::Exclusive } else { mode }, claim(name)));
        let (waiter, before) = (in_mode(mode, waiting_claim(name)), bench.now());
        two.queued(&waiter);
        (waiter, [before, bench.now()])
    });
    let waiters: Vec<_> = waiters.collect();
    bench.elapse(AGE);
    for (waiter, joined) in waiters {
        two.queued(&waiter);
        let age = |entry: &Entry| entry.queue.first().and_then(|waiter| waiter.age);
        expect_age(bench, &two, waiter.name.as_str(), joined, age);
    }
}

/// A lease is as old as its grant, however long it was waited for, and a renewal does not make it younger.
pub fn a_lease_is_as_old_as_its_grant(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let turns = kinds(&one).into_iter().map(|(name, mode)| {
        // A writer is before a reader: two readers would hold it together.
        let first = if mode == Mode::Shared { Mode::Exclusive } else { mode };
        let (holder, waiter) = (in_mode(first, claim(name)), in_mode(mode, waiting_claim(name)));
        let (lease, granted) = since(bench, || one.take(&holder));
        if keeps_a_queue(two.capabilities()) {
            two.queued(&waiter);
        }
        (name, holder, waiter, lease, granted)
    });
    let turns: Vec<_> = turns.collect();
    bench.elapse(AGE);
    for (name, holder, waiter, lease, granted) in turns {
        assert!(matches!(one.renew(&lease), Renewed::Renewed { .. }));
        expect_age(bench, &two, name, granted, of_holder);
        let (_, granted) = since(bench, || {
            assert_eq!(one.release(&holder), Released::Released);
            two.take(&waiter)
        });
        expect_age(bench, &two, name, granted, of_holder);
    }
}

/// Another owner, as one that adopts a ticket, goes on with the lease. Another mode is a new grant.
pub fn a_replacement_is_as_old_as_the_lease_before_it(bench: &Bench) {
    let one = bench.verbs();
    let kinds = kinds(&one);
    let first = |(name, mode): &Kind| {
        let claim = in_mode(*mode, claim(name));
        let (_, granted) = since(bench, || one.take(&claim));
        (claim, granted)
    };
    let leases: Vec<_> = kinds.iter().map(first).collect();
    bench.elapse(AGE);
    for ((name, mode), (old, granted)) in kinds.iter().zip(leases) {
        let new = in_mode(*mode, replacing(&old));
        one.take(&new);
        expect_age(bench, &one, name, granted, of_holder);
        if *mode == Mode::Shared {
            let (_, granted) = since(bench, || one.take(&replacing(&new)));
            expect_age(bench, &one, name, granted, of_holder);
        }
    }
}
