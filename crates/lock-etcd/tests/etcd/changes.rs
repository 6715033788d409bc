//! Leases that are replaced, locks that are kept, and limits.

use std::process::Stdio;
use std::time::Duration;

use lock_core::limit::{Act, Request};
use lock_core::{Answer, BlockingBackend, Certainty, Claim, Limit, Mode, ReleaseRequest, Released};
use test_support::bounds::{output_of, wait_for};

use crate::support::{Client, SOON, claim, lasting, reading, server, waiting};

/// A claim of a new owner that replaces the lease of this one.
fn replacing(old: &Claim, mode: Mode) -> Claim {
    Claim { replaces: Some(old.owner), ..claim(old.name.as_str()).in_mode(mode) }
}

fn permits(name: &str, count: u32) -> Claim {
    claim(name).in_mode(Mode::permits(count, 2).unwrap())
}

#[test]
fn a_waiter_that_is_older_than_a_replacement_draws_higher_tokens() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (old, waiter) = (claim("replaced"), waiting("replaced"));
    let first = one.take(&old);
    two.queue(&waiter, 1);
    let new = replacing(&old, Mode::Exclusive);
    let replaced = one.take(&new);
    assert!(replaced.tokens.low() > first.tokens.high());
    assert_eq!(one.renew(&first).unwrap(), None);
    one.releases(&new);
    let later = two.wait_for_grant(&waiter);
    assert!(later.tokens.low() > replaced.tokens.high(), "{later:?} after {replaced:?}");
    assert!(two.renew(&later).unwrap() > Some(Duration::from_secs(50)), "no longer for the length of a place");
    assert_eq!(two.take(&waiter).tokens, later.tokens);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_readers_in() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (writer, reader) = (claim("downgraded"), reading(waiting("downgraded")));
    one.take(&writer);
    two.queue(&reader, 1);
    let shared = one.take(&replacing(&writer, Mode::Shared));
    let beside = two.wait_for_grant(&reader);
    assert!(beside.tokens.low() > shared.tokens.high());
    assert!(one.renew(&shared).unwrap().is_some());
}

#[test]
fn a_reader_becomes_a_writer_alone_and_before_all_waiters() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let [reader, other] = [(); 2].map(|()| reading(claim("upgraded")));
    one.take(&reader);
    two.take(&other);
    one.is_busy(&replacing(&reader, Mode::Exclusive));
    two.releases(&other);
    let mut command = server.etcdctl(&["lock", "leasehold/upgraded", "echo", "locked"]);
    let theirs = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let keys = || server.run(&["get", "--prefix", "--keys-only", "leasehold/upgraded/"]);
    wait_for("its key", || keys().matches("upgraded").count() == 2);
    let writer = replacing(&reader, Mode::Exclusive);
    let lease = one.take(&writer);
    two.is_busy(&reading(claim("upgraded")));
    assert!(one.renew(&lease).unwrap().is_some());
    one.releases(&writer);
    assert!(output_of(theirs, "etcdctl lock").status.success());
}

#[test]
fn a_kept_lock_is_freed_by_another_client_of_its_owner() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (kept, waiter) = (claim("kept"), waiting("kept"));
    one.take(&kept);
    let keeping = ReleaseRequest { keep: Some(Duration::from_secs(60)), ..kept.release(Certainty::Answered) };
    assert_eq!(one.keep(&keeping), Released::Released);
    two.queue(&waiter, 1);
    assert_eq!(two.release(&kept, Certainty::Answered), Released::Released);
    two.wait_for_grant(&waiter);
}

#[test]
fn a_kept_lock_ends_by_itself() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (kept, waiter) = (claim("kept shortly"), waiting("kept shortly"));
    one.take(&kept);
    let keeping = ReleaseRequest { keep: Some(Duration::from_secs(1)), ..kept.release(Certainty::Answered) };
    assert_eq!(one.keep(&keeping), Released::Released);
    two.queue(&waiter, 1);
    two.wait_for_grant(&waiter);
}

#[test]
fn slots_that_a_deletion_by_hand_has_left_are_used_again() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let lease = one.take(&permits("left slots", 2));
    two.is_busy(&permits("left slots", 1));
    server.run(&["del", "--prefix", "leasehold/left slots/"]);
    let later = two.take(&permits("left slots", 2));
    assert_eq!(later.slots.get(), [0, 1]);
    assert!(later.tokens.low() > lease.tokens.high());
    assert_eq!(one.renew(&lease).unwrap(), None);
    // The new holder's slots do not end with the lease of the one before.
    assert_eq!(one.release(&permits("left slots", 2), Certainty::Answered), Released::NotHeld);
    one.is_busy(&permits("left slots", 1));
}

#[test]
fn a_holder_whose_entry_another_client_has_changed_still_ends_it() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let shared = waiting("twice");
    let before = lasting(claim("twice"), Duration::from_secs(60));
    one.take(&before);
    two.queue(&shared, 1);
    one.releases(&before);
    let lease = two.wait_for_grant(&shared);
    // The first client asks for the same owner, which makes it note when it was granted.
    assert_eq!(one.take(&shared).tokens, lease.tokens);
    assert!(two.renew(&lease).unwrap().is_some());
    two.releases(&shared);
    assert_eq!(one.release(&shared, Certainty::Answered), Released::NotHeld);
    one.take(&claim("twice"));
}

#[test]
fn a_client_whose_lease_another_one_has_replaced_cannot_end_it() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let old = claim("adopted");
    let before = one.take(&old);
    let lease = two.take(&replacing(&old, Mode::Exclusive));
    assert_eq!(one.release(&old, Certainty::Answered), Released::NotHeld);
    assert_eq!(one.renew(&before).unwrap(), None);
    assert!(two.renew(&lease).unwrap().is_some());
}

#[test]
fn a_limit_that_is_raised_wakes_the_waiters_of_other_clients() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    one.take(&permits("raised", 2));
    let waiter = waiting("raised").in_mode(Mode::permits(1, 2).unwrap());
    two.queue(&waiter, 1);
    let [known, new] = [2, 3].map(|limit| Limit::new(limit).unwrap());
    one.store.limit(&Request { name: waiter.name.clone(), known, act: Act::Set(new) }, SOON).unwrap();
    assert_eq!(two.wait_for_grant(&waiter).slots.get(), [2]);
    let answer = one.acquire(&permits("raised", 2)).unwrap();
    assert!(matches!(answer, Answer::Busy { .. }), "{answer:?}");
}

#[test]
fn slots_that_were_left_go_to_one_waiter_each() {
    let server = server();
    let clients = [(); 3].map(|()| Client::new(&server.url()));
    clients[0].take(&permits("left twice", 2));
    let waits = [(); 2].map(|()| waiting("left twice").in_mode(Mode::permits(1, 2).unwrap()));
    clients[1].queue(&waits[0], 1);
    clients[2].queue(&waits[1], 2);
    let first = ["get", "--prefix", "--keys-only", "--sort-by", "CREATE", "--limit", "1", "leasehold/left twice/"];
    server.run(&["del", server.run(&first).trim()]);
    let slots = [0, 1].map(|number| clients[number + 1].wait_for_grant(&waits[number]).slots.get().to_vec());
    assert_ne!(slots[0], slots[1]);
}

#[test]
fn a_limit_may_be_very_high() {
    let server = server();
    let clients = [(); 2].map(|()| Client::new(&server.url()));
    let permit = || claim("high").in_mode(Mode::permits(1, 2_000_000_000).unwrap());
    assert_eq!([0, 1].map(|number| clients[number].take(&permit()).slots.get().to_vec()), [[0], [1]]);
}
