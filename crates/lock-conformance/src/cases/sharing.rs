//! Any number of readers hold a lock together, and no writer beside them.

use lock_core::{Claim, Effect, ErrorKind, Fenced, Holder, Lease, Mode, Released, Renewed};

use super::events::grants_told;
use crate::Bench;
use crate::bench::earliest_end;
use crate::verbs::{AMPLE, BRIEF, LONG, Verbs, claim, in_mode, lasting, operator, waiting_claim};

fn reader() -> Claim {
    in_mode(Mode::Shared, claim("a"))
}

fn waiting_reader() -> Claim {
    in_mode(Mode::Shared, waiting_claim("a"))
}

fn writer() -> Claim {
    in_mode(Mode::Exclusive, claim("a"))
}

fn waiting_writer() -> Claim {
    in_mode(Mode::Exclusive, waiting_claim("a"))
}

fn in_place_of(old: &Claim, claim: Claim) -> Claim {
    Claim { replaces: Some(old.owner), ..claim }
}

#[track_caller]
fn holds(verbs: &Verbs, lease: &Lease) {
    assert_eq!(verbs.fence(lease), Fenced::Acknowledged);
}

/// A writer is refused while anybody reads, and a reader while somebody writes.
pub fn readers_hold_together_and_never_beside_a_writer(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second, third) = (reader(), reader(), writer());
    let leases = [one.take(&first), two.take(&second)];
    leases.iter().for_each(|lease| holds(&one, lease));
    assert!(leases.iter().all(|lease| lease.terms.mode == Mode::Shared && lease.slots.get().is_empty()));
    let Holder::Leasehold { tokens, .. } = three.refused(&third).holder else { panic!("a client holds it") };
    assert!(leases.iter().any(|lease| lease.tokens == tokens), "the holder is one of them");
    assert_eq!(one.release(&first), Released::Released);
    three.refused(&writer());
    assert_eq!(two.release(&second), Released::Released);
    let third = writer();
    three.take(&third);
    one.refused(&reader());
    assert_eq!(three.release(&third), Released::Released);
    one.take(&reader());
}

/// Each grant has tokens above all before, for readers and for writers.
pub fn tokens_rise_over_readers_and_writers(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second, third, fourth) = (writer(), reader(), reader(), writer());
    let before = one.take(&first);
    one.release(&first);
    let together = [one.take(&second), two.take(&third)];
    [&second, &third].into_iter().for_each(|claim| _ = one.release(claim));
    let leases = [&before, &together[0], &together[1], &two.take(&fourth)].map(|lease| lease.tokens);
    assert!(leases.windows(2).all(|pair| pair[0].high() < pair[1].low()), "{leases:?}");
}

/// A reader that asks again has the same lease, and the full ttl.
pub fn a_reader_that_asks_again_is_the_same(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = lasting(AMPLE, reader());
    let lease = one.take(&mine);
    two.take(&lasting(AMPLE, reader()));
    bench.elapse(AMPLE / 3);
    let asked_at = bench.now();
    assert_eq!(one.take(&mine), lease);
    assert!(bench.taken_over(&two, "a", bench.now() + AMPLE) >= earliest_end(asked_at, AMPLE), "not re-armed");
}

/// Renewal, release and fence of one reader are nothing to the others.
pub fn a_reader_acts_for_itself_alone(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second) = (reader(), reader());
    let (mine, other) = (one.take(&first), two.take(&second));
    let forged = Lease { tokens: other.tokens, ..mine.clone() };
    assert_eq!(one.renew(&forged), Renewed::NotHeld);
    assert_ne!(one.fence(&forged), Fenced::Acknowledged);
    assert_eq!(one.release(&reader()), Released::NotHeld);
    assert_eq!(one.release(&first), Released::Released);
    assert_eq!(one.release(&first), Released::NotHeld);
    assert_eq!(one.renew(&mine), Renewed::NotHeld);
    assert!(matches!(two.renew(&other), Renewed::Renewed { .. }));
    holds(&two, &other);
}

/// What one reader renews does not keep a dead one.
pub fn a_dead_reader_ends_alone(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let dead = one.take(&lasting(BRIEF, reader()));
    let alive = two.take(&reader());
    bench.outlive(BRIEF);
    assert!(matches!(two.renew(&alive), Renewed::Renewed { .. }));
    assert_eq!(one.renew(&dead), Renewed::NotHeld);
    assert_ne!(one.fence(&dead), Fenced::Acknowledged);
    three.refused(&writer());
    holds(&two, &alive);
}

/// The last reader has died: a writer gets the lock at the end of its lease, and not before.
pub fn a_dead_reader_ends_at_its_own_end(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let asked_at = bench.now();
    one.take(&lasting(BRIEF, reader()));
    let ends_at = bench.now() + BRIEF;
    let long = reader();
    two.take(&long);
    assert_eq!(two.release(&long), Released::Released);
    assert!(bench.taken_over(&three, "a", ends_at) >= earliest_end(asked_at, BRIEF), "free too early");
}

/// A reader that comes after a waiting writer waits behind it.
pub fn a_waiting_writer_is_not_overtaken(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second, third) = (reader(), waiting_writer(), waiting_reader());
    one.take(&first);
    assert_eq!(two.queued(&second), 1);
    assert_eq!(three.queued(&third), 2);
    three.refused(&reader());
    assert_eq!(one.release(&first), Released::Released);
    let lease = two.take(&second);
    three.queued(&third);
    assert_eq!(two.release(&second), Released::Released);
    assert!(three.take(&third).tokens.low() > lease.tokens.high());
}

/// The readers at the head of the queue get the lock together; a writer behind them, and whatever is behind that, waits.
pub fn one_release_serves_all_the_readers_at_the_head(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let first = writer();
    let (second, third, fourth, fifth) = (waiting_reader(), waiting_reader(), waiting_writer(), waiting_reader());
    one.take(&first);
    let told = grants_told(&two);
    for (place, waiter) in (1..).zip([&second, &third, &fourth, &fifth]) {
        assert_eq!(two.queued(waiter), place);
    }
    assert_eq!(one.release(&first), Released::Released);
    told.are(bench, &[&second, &third]);
    let leases = [&second, &third].map(|claim| two.take(claim));
    told.agree_with(&leases);
    [&fourth, &fifth].into_iter().for_each(|claim| two.denied(claim));
    [&second, &third].into_iter().for_each(|claim| assert_eq!(two.release(claim), Released::Released));
    two.take(&fourth);
    two.denied(&fifth);
}

/// A writer that leaves the queue does not hold up the readers that waited behind it.
pub fn readers_go_on_when_the_writer_before_them_leaves(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (second, third) = (waiting_writer(), waiting_reader());
    let told = grants_told(&three);
    let lease = one.take(&reader());
    two.queued(&second);
    three.queued(&third);
    assert_eq!(two.release(&second), Released::Left);
    told.are(bench, &[&third]);
    three.take(&third);
    holds(&one, &lease);
}

/// A claim to read that arrives after its release neither holds nor waits.
pub fn a_late_claim_to_read_leaves_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, late) = (reader(), reader());
    one.take(&first);
    two.abandon(&late);
    two.denied(&late);
    assert_eq!(one.release(&first), Released::Released);
    one.take(&writer());
}

/// A writer becomes a reader in one step: no other writer gets in between, and the readers at the head read as well.
pub fn a_downgrade_lets_waiting_readers_in_and_no_writer(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, second, third, fourth) = (writer(), waiting_reader(), waiting_writer(), waiting_reader());
    let told = grants_told(&two);
    let before = one.take(&old);
    [&second, &third, &fourth].into_iter().for_each(|claim| _ = two.queued(claim));
    let new = in_place_of(&old, reader());
    let lease = one.take(&new);
    assert!(lease.tokens.low() > before.tokens.high() && lease.terms.mode == Mode::Shared);
    told.are(bench, &[&second]);
    two.take(&second);
    [&third, &fourth].into_iter().for_each(|claim| two.denied(claim));
    assert_eq!(one.take(&new), lease, "asked again");
    assert_eq!(one.renew(&before), Renewed::NotHeld);
    one.denied(&old);
    holds(&one, &lease);
    [(&one, &new), (&two, &second)].into_iter().for_each(|(by, claim)| _ = by.release(claim));
    two.take(&third);
}

/// The only reader becomes a writer in one step, past the queue.
pub fn an_upgrade_is_granted_to_the_only_reader(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, second) = (reader(), waiting_writer());
    let before = one.take(&old);
    two.queued(&second);
    let new = in_place_of(&old, writer());
    let lease = one.take(&new);
    assert!(lease.tokens.low() > before.tokens.high() && lease.terms.mode == Mode::Exclusive);
    assert_eq!(one.take(&new), lease, "asked again");
    two.refused(&reader());
    one.denied(&old);
    holds(&one, &lease);
    assert_eq!(one.release(&new), Released::Released);
    two.take(&second);
}

/// Beside another reader there is no upgrade, and the lease stays what it is.
pub fn an_upgrade_beside_another_reader_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, second) = (reader(), reader());
    let (lease, other) = (one.take(&old), two.take(&second));
    let new = in_place_of(&old, writer());
    let Holder::Leasehold { tokens, .. } = one.refused(&new).holder else { panic!("a client holds it") };
    assert_eq!(tokens, other.tokens, "the one that is in the way");
    holds(&one, &lease);
    holds(&two, &other);
    assert_eq!(one.take(&old), lease, "it was not given up");
    assert_eq!(two.release(&second), Released::Released);
    one.take(&new);
}

/// A lease to read is replaced by one of another owner, beside other readers and past a writer that waits.
pub fn a_reader_is_replaced_by_another_owner(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, second, next) = (reader(), reader(), waiting_writer());
    let (before, other) = (one.take(&old), two.take(&second));
    two.queued(&next);
    let new = in_place_of(&old, reader());
    let lease = two.take(&new);
    assert!(lease.tokens.low() > other.tokens.high());
    assert_eq!(two.take(&new), lease, "asked again");
    let error = one.try_acquire(&in_place_of(&old, reader())).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::NotHeld, Effect::None), "{error}");
    assert_eq!(one.renew(&before), Renewed::NotHeld);
    holds(&two, &lease);
    assert_eq!(two.release(&second), Released::Released);
    assert_eq!(two.queued(&next), 1, "one still reads");
    assert_eq!(two.release(&new), Released::Released);
    two.take(&next);
}

/// Operators see each reader, and can end the lease of one of them.
pub fn each_reader_is_shown_and_revoked_alone(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    if !one.can_inspect() {
        return;
    }
    let leases = [one.take(&lasting(LONG * 2, reader())), two.take(&reader())];
    two.queued(&waiting_writer());
    let entry = two.holder("a").unwrap();
    let tokens = entry.holders.iter().map(|held| match held.holder {
        Holder::Leasehold { tokens, .. } => (tokens, held.mode),
        Holder::Foreign => panic!("a client holds it"),
    });
    assert_eq!(tokens.collect::<Vec<_>>(), leases.each_ref().map(|lease| (lease.tokens, Mode::Shared)));
    let wanted: Vec<_> = entry.queue.iter().map(|waiter| waiter.mode).collect();
    assert_eq!((entry.leases, entry.waiters, wanted), (2, 1, vec![Mode::Exclusive]));
    assert_eq!(two.revoke("a", leases[0].tokens.low()), lock_core::inspect::Revoked::Revoked);
    assert_eq!(one.renew(&leases[0]), Renewed::Revoked { by: operator() });
    holds(&two, &leases[1]);
}
