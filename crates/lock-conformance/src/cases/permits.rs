//! A semaphore has so many permits, each with a numbered slot, and never more than these are held.

use std::collections::BTreeMap;

use lock_core::{Claim, Effect, ErrorKind, Fenced, FencingToken, Holder, Lease, Mode, ModeKind, Released, Renewed};

use super::events::grants_told;
use crate::bench::earliest_end;
use crate::verbs::{BRIEF, LONG, claim, in_mode, lasting, waiting_claim};
use crate::{Bench, Verbs};

/// How many permits there are, unless a case says otherwise.
const LIMIT: u32 = 4;

fn of(limit: u32, count: u32, claim: Claim) -> Claim {
    in_mode(Mode::permits(count, limit).unwrap(), claim)
}

fn permits(count: u32) -> Claim {
    of(LIMIT, count, claim("a"))
}

fn waiting_permits(count: u32) -> Claim {
    of(LIMIT, count, waiting_claim("a"))
}

fn in_place_of(old: &Claim, claim: Claim) -> Claim {
    Claim { replaces: Some(old.owner), ..claim }
}

/// Takes permits, which must come with as many slots and tokens.
#[track_caller]
fn take(verbs: &Verbs, claim: &Claim) -> Lease {
    let lease = verbs.take(claim);
    let (slots, count) = (lease.slots.get(), u64::from(claim.terms.mode.count()));
    assert_eq!((slots.len() as u64, lease.tokens.width().get()), (count, count), "{lease:?}");
    assert!(slots.is_sorted() && slots.iter().all(|slot| *slot < LIMIT), "{slots:?}");
    lease
}

#[track_caller]
fn holds(verbs: &Verbs, lease: &Lease) {
    assert_eq!(verbs.fence(lease), Fenced::Acknowledged);
}

#[track_caller]
fn in_other_use(verbs: &Verbs, claim: &Claim, words: [&str; 2]) {
    let error = verbs.try_acquire(claim).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
    let text = error.to_string();
    assert!(
        words.iter().all(|word| text.contains(word)) && error.remedy().is_some(),
        "{text} names not both {words:?}"
    );
}

/// Never more than the limit, by leases of any size.
pub fn no_more_than_the_limit_are_held(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second, third) = (permits(2), permits(1), permits(1));
    [&first, &second].into_iter().for_each(|claim| _ = take(&one, claim));
    two.refused(&permits(2));
    take(&two, &third);
    let holder = one.refused(&permits(1)).holder;
    assert!(matches!(holder, Holder::Leasehold { .. }), "{holder:?}");
    assert_eq!(one.release(&first), Released::Released);
    two.refused(&permits(3));
    take(&two, &permits(2));
    one.refused(&permits(1));
}

/// Each permit has a slot of its own, with a number below the limit.
pub fn slots_are_unique_while_they_are_held(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let claims = [permits(1), permits(2), permits(1)];
    let all = |leases: &[Lease]| {
        let mut slots: Vec<_> = leases.iter().flat_map(|lease| lease.slots.get().to_vec()).collect();
        slots.sort_unstable();
        slots
    };
    let mut leases = claims.each_ref().map(|claim| take(&one, claim));
    assert_eq!(all(&leases), [0, 1, 2, 3]);
    assert_eq!(one.release(&claims[1]), Released::Released);
    let freed = leases[1].slots.clone();
    leases[1] = take(&two, &permits(2));
    assert_eq!((all(&leases), &leases[1].slots), (vec![0, 1, 2, 3], &freed));
}

/// Whatever a slot stands for can be fenced.
pub fn the_tokens_of_a_slot_rise(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mut highest: BTreeMap<u32, FencingToken> = BTreeMap::new();
    for counts in [[1, 2], [2, 1], [1, 1], [3, 1], [2, 2]] {
        let claims = counts.map(permits);
        let leases = [take(&one, &claims[0]), take(&two, &claims[1])];
        for (turn, slot, lease) in
            leases.iter().flat_map(|lease| (0..).zip(lease.slots.get()).map(move |(n, slot)| (n, slot, lease)))
        {
            let token = lease.tokens.nth(turn).unwrap();
            assert!(highest.insert(*slot, token) < Some(token), "slot {slot} had a higher token than {token}");
        }
        [(&two, &claims[0]), (&one, &claims[1])].into_iter().for_each(|(by, claim)| _ = by.release(claim));
    }
}

/// A holder that asks again has the same tokens and slots.
pub fn permits_that_are_asked_for_again_are_the_same(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second) = (permits(1), permits(2));
    take(&one, &first);
    let lease = take(&one, &second);
    assert_eq!(one.release(&first), Released::Released);
    assert_eq!(take(&two, &second), lease, "asked on another connection");
    assert!(matches!(one.renew(&lease), Renewed::Renewed { .. }));
    assert_eq!(one.release(&second), Released::Released);
    assert_eq!(one.release(&second), Released::NotHeld);
    assert_eq!(one.renew(&lease), Renewed::NotHeld);
    take(&two, &permits(4));
}

/// Permits that nobody renews come back at the end of their lease, and not before.
pub fn the_permits_of_a_dead_holder_come_back_at_its_end(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let asked_at = bench.now();
    take(&one, &lasting(BRIEF, permits(2)));
    let ends_at = bench.now() + BRIEF;
    let alive = take(&one, &permits(2));
    let back_at = bench.granted_by(ends_at, || two.try_acquire(&permits(2)));
    assert!(back_at >= earliest_end(asked_at, BRIEF), "free too early");
    holds(&one, &alive);
}

/// Small requests do not overtake a large one.
pub fn a_large_request_at_the_head_is_not_overtaken(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second, large, small) = (permits(2), permits(1), waiting_permits(3), waiting_permits(1));
    [&first, &second].into_iter().for_each(|claim| _ = take(&one, claim));
    assert_eq!(two.queued(&large), 1);
    assert_eq!(three.queued(&small), 2, "although it would fit");
    three.refused(&permits(1));
    assert_eq!(one.release(&second), Released::Released);
    [(&two, &large), (&three, &small)].into_iter().for_each(|(by, claim)| by.denied(claim));
    assert_eq!(one.release(&first), Released::Released);
    take(&two, &large);
    take(&three, &small);
}

/// All that fit get their permits, in their order, each with the slots that its answer names.
pub fn one_release_serves_all_that_fit(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let first = permits(4);
    let waiters = [waiting_permits(1), waiting_permits(2), waiting_permits(2), waiting_permits(1)];
    take(&one, &first);
    let told = grants_told(&two);
    for (place, waiter) in (1..).zip(&waiters) {
        assert_eq!(two.queued(waiter), place);
    }
    assert_eq!(one.release(&first), Released::Released);
    told.are(bench, &[&waiters[0], &waiters[1]]);
    let leases = [&waiters[0], &waiters[1]].map(|claim| take(&two, claim));
    told.agree_with(&leases);
    [&waiters[2], &waiters[3]].into_iter().for_each(|claim| two.denied(claim));
}

/// While anybody holds or waits, the limit is what it is; afterwards it can be another.
pub fn another_limit_is_refused_and_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, other) = (permits(1), of(LIMIT + 1, 1, waiting_claim("a")));
    let lease = take(&one, &first);
    in_other_use(&two, &other, ["limit 4", "limit 5"]);
    assert_eq!(two.release(&other), Released::NotHeld, "it has no place");
    take(&two, &permits(3));
    two.refused(&permits(1));
    holds(&one, &lease);
    let alone = of(LIMIT + 1, 5, claim("b"));
    assert_eq!(two.take(&alone).slots.get(), [0, 1, 2, 3, 4]);
    in_other_use(&one, &of(LIMIT, 1, claim("b")), ["limit 5", "limit 4"]);
    assert_eq!(two.release(&alone), Released::Released);
    one.take(&of(LIMIT, 4, claim("b")));
}

/// A semaphore is no lock, and a lock is no semaphore.
pub fn another_kind_is_refused_and_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = take(&one, &permits(1));
    in_other_use(&two, &waiting_claim("a"), ["semaphore", "lock"]);
    if two.capabilities().modes.contains(&ModeKind::Shared) {
        in_other_use(&two, &in_mode(Mode::Shared, claim("a")), ["semaphore", "lock"]);
    }
    take(&two, &permits(3));
    holds(&one, &lease);
    let held = two.take(&claim("b"));
    in_other_use(&one, &of(LIMIT, 1, waiting_claim("b")), ["lock", "semaphore"]);
    holds(&two, &held);
}

/// A claim that arrives after its release takes no permit.
pub fn a_late_claim_for_permits_leaves_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let late = permits(1);
    take(&one, &permits(2));
    two.abandon(&late);
    two.denied(&late);
    take(&one, &permits(2));
}

/// The first slots stay, with new tokens, and the others are handed over.
pub fn permits_are_given_back_in_part(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, waiter) = (permits(4), waiting_permits(3));
    let told = grants_told(&two);
    let before = take(&one, &old);
    two.queued(&waiter);
    let new = in_place_of(&old, permits(1));
    let lease = take(&one, &new);
    assert_eq!(lease.slots.get(), [0]);
    assert!(lease.tokens.low() > before.tokens.high());
    told.are(bench, &[&waiter]);
    assert_eq!(take(&two, &waiter).slots.get(), [1, 2, 3]);
    assert_eq!(take(&one, &new), lease, "asked again");
    assert_eq!(one.renew(&before), Renewed::NotHeld);
    one.denied(&old);
    two.refused(&permits(1));
}

/// A lease is replaced by one for as many permits, which are the same; and not by one for more.
pub fn permits_are_replaced_by_as_many_and_not_by_more(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, old, waiter) = (permits(1), permits(2), waiting_permits(2));
    take(&one, &first);
    let before = take(&one, &old);
    let error = one.try_acquire(&in_place_of(&old, permits(3))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert_eq!(take(&one, &old), before);
    two.queued(&waiter);
    let new = in_place_of(&old, permits(2));
    let after = take(&two, &new);
    assert_eq!(after.slots, before.slots);
    assert!(after.tokens.low() > before.tokens.high());
    assert_eq!(take(&two, &new), after, "asked again");
    let error = one.try_acquire(&in_place_of(&old, permits(2))).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::NotHeld, Effect::None), "{error}");
    assert_eq!(two.queued(&waiter), 1, "one permit is free, and not two");
}

/// Operators see each holder with its slots, and can end the lease of one of them.
pub fn each_holder_is_shown_with_its_slots(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    if !one.can_inspect() {
        return;
    }
    let leases = [take(&one, &lasting(LONG * 2, permits(1))), take(&two, &permits(2))];
    let waiter = waiting_permits(2);
    two.queued(&waiter);
    let entry = two.holder("a").unwrap();
    let shown: Vec<_> = entry.holders.iter().map(|held| (held.mode, held.slots.clone())).collect();
    assert_eq!(shown, leases.each_ref().map(|lease| (lease.terms.mode, lease.slots.clone())));
    let wanted: Vec<_> = entry.queue.iter().map(|waiter| waiter.mode).collect();
    assert_eq!((entry.leases, entry.waiters, wanted), (2, 1, vec![waiter.terms.mode]));
    assert_eq!(two.revoke("a", leases[1].tokens.high()), lock_core::inspect::Revoked::Revoked);
    assert_eq!(take(&two, &waiter).slots, leases[1].slots);
    holds(&one, &leases[0]);
}
