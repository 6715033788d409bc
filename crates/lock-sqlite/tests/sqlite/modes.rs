//! Locks that several may hold: readers, and permits of semaphores.

use lock_core::inspect::Revoked;
use lock_core::{
    Answer, BlockingBackend, Certainty, Claim, Effect, ErrorKind, Fenced, Holder, Queueing, Released, Renewed,
    StoreEvent,
};

use crate::rig::{
    Ask, Rig, WITHIN, at_once, busy, claim, granted, impatient, lasting, low, operator, permits, position, reader, secs,
};
use crate::watching::ear;

fn is_renewed(renewed: Renewed) -> bool {
    matches!(renewed, Renewed::Renewed { .. })
}

#[test]
fn readers_hold_together_and_nobody_overtakes_anybody() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let (one, two, writer, late) = (reader("a"), reader("a"), claim("a"), reader("a"));
    let first = granted(here.ask(&one));
    let second = granted(there.ask(&two));
    assert!(low(&second) > low(&first) && first.slots.get().is_empty());
    busy(here.ask(&impatient("a")));
    assert_eq!((position(here.ask(&writer)), position(there.ask(&late))), (1, 2));
    busy(there.ask(&at_once(reader("a"))));
    let wanted = Renewed::Renewed { valid_for: secs(30), wanted: true };
    assert_eq!((here.extend(&first), there.extend(&second)), (wanted.clone(), wanted));

    assert_eq!(here.part(&one), Released::Released);
    assert_eq!((position(here.ask(&writer)), here.part(&one)), (1, Released::NotHeld));
    assert_eq!(there.part(&two), Released::Released);
    let written = granted(here.ask(&writer));
    assert!(low(&written) > low(&second));
    assert_eq!(position(there.ask(&late)), 1);
    assert_eq!(here.part(&writer), Released::Released);
    assert!(low(&granted(there.ask(&late))) > low(&written));
}

#[test]
fn a_release_hands_over_to_all_who_fit_and_to_32_at_most() {
    let rig = Rig::new();
    let client = rig.client();
    let writer = claim("a");
    granted(client.ask(&writer));
    let readers: Vec<Claim> = (0..40).map(|_| reader("a")).collect();
    readers.iter().for_each(|reader| assert!(position(client.ask(reader)) > 0));
    let last = claim("a");
    assert_eq!(position(client.ask(&last)), 41);
    client.part(&writer);
    assert_eq!((rig.rows("holds"), rig.rows("queue")), (32, 9));
    // Any visit goes on with it.
    granted(client.ask(&readers[39]));
    assert_eq!((rig.rows("holds"), rig.rows("queue")), (40, 1));
    let tokens: Vec<u64> = readers.iter().map(|reader| low(&granted(client.ask(reader)))).collect();
    assert!(tokens.is_sorted());
    assert_eq!(position(client.ask(&last)), 1);
}

#[test]
fn each_reader_ends_at_its_own_end_and_the_last_one_frees_the_lock() {
    let rig = Rig::new();
    let client = rig.client();
    let (brief, long, dead) = (lasting("5s", reader("a")), lasting("20s", reader("a")), lasting("10s", reader("a")));
    let leases = [&brief, &long, &dead].map(|reader| granted(client.ask(reader)));
    assert_eq!(busy(client.ask(&impatient("a"))), secs(20));
    rig.clock.advance(secs(5));
    assert_eq!(client.part(&brief), Released::NotHeld);
    assert!(!is_renewed(client.extend(&leases[0])) && is_renewed(client.extend(&leases[2])));
    rig.clock.advance(secs(10));
    assert_eq!(busy(client.ask(&impatient("a"))), secs(5));
    assert_eq!(leases.each_ref().map(|lease| is_renewed(client.extend(lease))), [false, true, false]);
    assert_eq!(busy(client.ask(&impatient("a"))), secs(20));
    rig.clock.advance(secs(20));
    granted(client.ask(&impatient("a")));
    assert_eq!(leases.each_ref().map(|lease| is_renewed(client.extend(lease))), [false; 3]);
}

#[test]
fn a_reader_that_asks_again_has_the_same_tokens_and_its_full_ttl() {
    let rig = Rig::new();
    let client = rig.client();
    let (one, two) = (lasting("10s", reader("a")), lasting("3s", reader("a")));
    let lease = granted(client.ask(&one));
    granted(client.ask(&two));
    rig.clock.advance(secs(8));
    assert_eq!(granted(client.ask(&one)), lease);
    assert_eq!(busy(client.ask(&impatient("a"))), secs(10));
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::Acknowledged);
}

#[test]
fn permits_have_the_lowest_free_slots_and_a_token_for_each() {
    let rig = Rig::new();
    let client = rig.client();
    let [two, one, other] = [(2, 5), (1, 5), (2, 5)].map(|(count, limit)| permits("a", count, limit));
    let slots = |claim: &Claim| granted(client.ask(claim)).slots.get().to_vec();
    assert_eq!((slots(&two), slots(&one), slots(&other)), (vec![0, 1], vec![2], vec![3, 4]));
    assert_eq!(slots(&two), [0, 1], "asked again");
    busy(client.ask(&at_once(permits("a", 1, 5))));
    assert_eq!(client.part(&two), Released::Released);
    let first = granted(client.ask(&permits("a", 1, 5)));
    assert_eq!((first.slots.get(), first.tokens.width().get()), (&[0][..], 1));
    let lease = granted(client.ask(&other));
    assert_eq!((lease.tokens.width().get(), client.fence(&lease, WITHIN).unwrap()), (2, Fenced::Acknowledged));
    assert!(low(&first) > lease.tokens.high().get());
    assert!(is_renewed(client.extend(&lease)));
}

#[test]
fn a_large_request_at_the_head_is_not_overtaken_by_a_small_one() {
    let rig = Rig::new();
    let client = rig.client();
    let held = [lasting("10s", permits("a", 1, 3)), lasting("20s", permits("a", 1, 3))];
    held.iter().for_each(|claim| drop(granted(client.ask(claim))));
    let (large, small) = (permits("a", 3, 3), permits("a", 1, 3));
    assert_eq!((position(client.ask(&large)), position(client.ask(&small))), (1, 2));
    assert_eq!(busy(client.ask(&at_once(permits("a", 1, 3)))), secs(20));
    client.part(&held[0]);
    assert_eq!(position(client.ask(&small)), 2);
    // Who leaves lets those behind it in, in either way.
    assert_eq!(client.part(&large), Released::Left);
    assert_eq!((rig.rows("queue"), granted(client.ask(&small)).slots.get()), (0, &[0][..]));
    let behind = permits("a", 1, 3);
    assert_eq!((position(client.ask(&large)), position(client.ask(&behind))), (1, 2));
    let answer = client.ask(&at_once(large));
    assert!(matches!(answer, Answer::Busy { remaining: None, .. }), "the next one can be served at once: {answer:?}");
    assert_eq!((rig.rows("queue"), granted(client.ask(&behind)).slots.get()), (0, &[2][..]));
}

#[test]
fn a_permit_is_free_as_soon_as_enough_holds_have_ended() {
    let rig = Rig::new();
    let client = rig.client();
    for (time, count) in [("20s", 1), ("5s", 2), ("10s", 1)] {
        granted(client.ask(&lasting(time, permits("a", count, 4))));
    }
    let remaining = |count| busy(client.ask(&at_once(permits("a", count, 4))));
    assert_eq!([1, 2, 3, 4].map(remaining), [5, 5, 10, 20].map(secs));
    rig.clock.advance(secs(10));
    assert_eq!(granted(client.ask(&permits("a", 3, 4))).slots.get(), [1, 2, 3]);
    assert_eq!(remaining(1), secs(10));
}

#[test]
fn a_name_is_used_in_one_way_while_anybody_holds_or_waits() {
    let rig = Rig::new();
    let client = rig.client();
    let refused = |claim: &Claim| {
        let error = client.refusal(claim);
        assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None));
        error.to_string()
    };
    let (lock, shared, four) = (claim("a"), reader("a"), permits("a", 1, 4));
    granted(client.ask(&lock));
    assert!(refused(&four).contains("in use as a lock, not as a semaphore of limit 4"));
    client.part(&lock);
    granted(client.ask(&shared));
    refused(&four);
    client.part(&shared);
    granted(client.ask(&four));
    refused(&lock);
    refused(&shared);
    assert!(refused(&permits("a", 1, 5)).contains("of limit 4, not as a semaphore of limit 5"));
    assert_eq!((rig.rows("queue"), client.part(&four)), (0, Released::Released));

    granted(client.ask(&lasting("5s", lock)));
    position(client.ask(&shared));
    rig.clock.advance(secs(6));
    refused(&four);
    rig.clock.advance(secs(5));
    granted(client.ask(&four));
}

#[test]
fn one_of_many_is_revoked_by_its_token_and_shown_with_the_longest() {
    let rig = Rig::new();
    let client = rig.client();
    let leases = ["20s", "30s", "10s"].map(|time| granted(client.ask(&lasting(time, reader("a")))));
    let writer = claim("a");
    position(client.ask(&writer));
    let name = &leases[0].name;
    let entry = client.holder(name, WITHIN).unwrap().unwrap();
    let Holder::Leasehold { tokens, .. } = entry.holder else { panic!("{entry:?}") };
    assert_eq!((tokens, entry.remaining, entry.waiters), (leases[1].tokens, Some(secs(30)), 1));
    assert_eq!(client.revoke(name, leases[1].tokens.low(), &operator(), WITHIN).unwrap(), Revoked::Revoked);
    assert_eq!(client.revoke(name, leases[1].tokens.low(), &operator(), WITHIN).unwrap(), Revoked::NotHeld);
    assert_eq!(client.holder(name, WITHIN).unwrap().unwrap().remaining, Some(secs(20)));
    assert_eq!(leases.each_ref().map(|lease| is_renewed(client.extend(lease))), [true, false, true]);
    for lease in [&leases[0], &leases[2]] {
        assert_eq!(client.revoke(name, lease.tokens.high(), &operator(), WITHIN).unwrap(), Revoked::Revoked);
    }
    granted(client.ask(&writer));
    assert_eq!(leases.each_ref().map(|lease| is_renewed(client.extend(lease))), [false; 3]);
}

#[test]
fn all_who_hold_are_shown_with_their_slots_and_those_who_wait_with_their_modes() {
    let rig = Rig::new();
    let client = rig.client();
    let [two, one, waiter] = [permits("a", 2, 3), lasting("10s", permits("a", 1, 3)), permits("a", 2, 3)];
    let leases = [&two, &one].map(|claim| granted(client.ask(claim)));
    position(client.ask(&waiter));
    let entry = client.holder(&two.name, WITHIN).unwrap().unwrap();
    let shown: Vec<_> = entry.holders.iter().map(|held| (held.mode, held.slots.get(), held.remaining)).collect();
    let held = [(two.terms.mode, &[0, 1][..], Some(secs(30))), (one.terms.mode, &[2][..], Some(secs(10)))];
    assert_eq!((shown, entry.leases, entry.queue[0].mode), (held.to_vec(), 2, waiter.terms.mode));
    assert_eq!(entry.holders[1].holder, Holder::Leasehold { tokens: leases[1].tokens, note: one.note.clone() });
}

/// The token of a reader does not say that the lock has changed hands between writers.
#[test]
fn a_reader_raises_no_fence() {
    let rig = Rig::new();
    let client = rig.client();
    let (writer, reader) = (claim("a"), reader("a"));
    let write = granted(client.ask(&writer));
    client.part(&writer);
    let read = granted(client.ask(&reader));
    assert!(read.tokens > write.tokens);
    assert_eq!(client.fence(&write, WITHIN).unwrap(), Fenced::NotHeld);
    client.part(&reader);
    let next = granted(client.ask(&claim("a")));
    assert_eq!(client.fence(&read, WITHIN).unwrap(), Fenced::Higher(next.tokens.low()));
}

#[test]
fn readers_that_wait_in_another_process_are_told_of_their_grants() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let events = ear(&here);
    let (writer, readers) = (claim("a"), [reader("a"), reader("a")]);
    granted(there.ask(&writer));
    readers.iter().for_each(|reader| assert!(position(here.ask(reader)) > 0));
    there.part(&writer);
    for _ in &readers {
        let StoreEvent::Granted { lease, wanted, .. } = events.recv_timeout(WITHIN).unwrap() else {
            panic!("no grant")
        };
        let claim = readers.iter().find(|reader| reader.owner == lease.owner).unwrap();
        assert_eq!((&granted(here.ask(claim)), wanted), (&lease, false));
    }
}

#[test]
fn who_waits_for_a_permit_is_told_when_a_hold_ends_although_nobody_writes() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let events = ear(&here);
    granted(there.ask(&lasting("5s", permits("a", 1, 2))));
    granted(there.ask(&lasting("20s", permits("a", 1, 2))));
    let waiter = permits("a", 1, 2);
    position(here.ask(&waiter));
    rig.clock.advance(secs(5));
    assert_eq!(events.recv_timeout(WITHIN), Ok(StoreEvent::Freed { name: waiter.name.clone() }));
    assert_eq!(granted(here.ask(&waiter)).slots.get(), [0]);
}

#[test]
fn a_thousand_dead_holders_leave_nothing_behind() {
    let rig = Rig::new();
    let client = rig.client();
    for _ in 0..20 {
        for _ in 0..50 {
            granted(client.ask(&lasting("300ms", permits("a", 1, 50))));
        }
        busy(client.ask(&at_once(permits("a", 1, 50))));
        rig.clock.advance(secs(1));
    }
    assert!(rig.rows("holds") <= 100, "{} rows", rig.rows("holds"));
    assert_eq!(granted(client.ask(&permits("a", 50, 50))).slots.get().len(), 50);
}

#[test]
fn a_late_claim_of_a_reader_that_was_given_up_is_refused() {
    let rig = Rig::new();
    let client = rig.client();
    let (one, two) = (reader("a"), reader("a"));
    granted(client.ask(&two));
    let unsure = one.release(Certainty::Unknown);
    assert_eq!(client.release(&unsure, WITHIN).unwrap(), Released::NotHeld);
    assert_eq!(client.refusal(&one).kind(), ErrorKind::Protocol);
    assert_eq!(client.part(&two), Released::Released);
    assert_eq!(one.queueing, Queueing::Wanted);
}
