//! Semaphores as users have them: in either facade, over several clients, with several holders in one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use lock_core::{AcquireError, ErrorKind, FencingToken, LossReason, Mode};
use lock_host::{Permits, Unchanged};

use crate::facade::options;
use crate::locks::{Guard, Lock, Waiter};
use crate::verbs::{BRIEF, LONG, in_mode, waiting_claim};
use crate::{Bench, Client};

/// How many permits there are, unless a case says otherwise.
const LIMIT: u32 = 4;
/// How long a slot is held, so that one that is given to two is held by both at once.
const OVERLAP: Duration = Duration::from_millis(3);

fn semaphore(client: &Client) -> Lock<Permits> {
    client.semaphore("a", LIMIT, &options(LONG))
}

/// A client of this facade, and one of the other.
fn two_clients(bench: &Bench) -> [Client; 2] {
    [bench.client(), bench.client_of(bench.facade().other())]
}

#[track_caller]
fn waits(bench: &Bench, waiter: &Waiter<Permits>) {
    (0..20).for_each(|_| bench.pause());
    assert!(!waiter.is_finished(), "it does not wait");
}

#[track_caller]
fn comes(bench: &Bench, waiter: Waiter<Permits>) -> Guard<Permits> {
    bench.until("the waiter has them", || waiter.is_finished());
    waiter.outcome().unwrap()
}

#[track_caller]
fn is_in_other_use<G: std::fmt::Debug>(answer: Result<G, AcquireError>) {
    let error = answer.expect_err("the name is in other use");
    let AcquireError::Backend(told) = &error else { panic!("{error:?}") };
    assert!(told.kind() == ErrorKind::OtherKind && told.remedy().is_some(), "{error}");
    assert!(error.to_string().contains("acquire \"a\": "), "{error}");
}

/// As many hold as there are permits, each with a slot of its own.
pub fn as_many_hold_as_there_are_permits(bench: &Bench) {
    let clients @ [one, two] = &two_clients(bench);
    let guards = [one, two, one, two].map(|client| semaphore(client).acquire().unwrap());
    let mut slots: Vec<_> = guards.iter().flat_map(Guard::slots).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2, 3]);
    let mut later = Vec::new();
    for guard in guards {
        for client in clients {
            assert!(semaphore(client).try_acquire().unwrap().is_none(), "more than the limit");
        }
        let freed = guard.slots();
        guard.release().unwrap();
        let next = semaphore(one).try_acquire().unwrap().expect("one is free");
        assert_eq!(next.slots(), freed);
        later.push(next);
    }
}

/// The holder of a slot has a higher token than all who had it before.
pub fn tokens_of_each_slot_rise(bench: &Bench) {
    let ([one, two], highest) = (two_clients(bench), Mutex::new(BTreeMap::<u32, FencingToken>::new()));
    let held = Mutex::new(vec![false; LIMIT as usize]);
    let note = |guard: &Guard<Permits>| {
        for (slot, token) in guard.tokens() {
            let was_held = std::mem::replace(&mut held.lock().unwrap()[slot as usize], true);
            assert!(!was_held, "two hold the slot {slot}");
            let before = highest.lock().unwrap().insert(slot, token);
            assert!(before.is_none_or(|before| before < token), "slot {slot}: {token} after {before:?}");
        }
    };
    let give_back = |guard: Guard<Permits>| {
        guard.slots().iter().for_each(|slot| held.lock().unwrap()[*slot as usize] = false);
        guard.release().unwrap();
    };
    let beside = [&one, &two].map(|client| semaphore(client).acquire_many(1).unwrap());
    beside.iter().for_each(note);
    beside.into_iter().for_each(give_back);
    let works = |client: &Client, count: u32| {
        for _ in 0..4 {
            let guard = semaphore(client).acquire_many(count).unwrap();
            note(&guard);
            std::thread::sleep(OVERLAP);
            give_back(guard);
        }
    };
    std::thread::scope(|scope| {
        let works = &works;
        let threads: Vec<_> = [(&one, 1), (&two, 2), (&one, 3), (&two, 1), (&one, 4), (&two, 2)]
            .into_iter()
            .map(|(client, count)| scope.spawn(move || works(client, count)))
            .collect();
        bench.until("all have had their turns", || threads.iter().all(|thread| thread.is_finished()));
    });
}

/// Several permits are granted together, or none of them.
pub fn several_are_granted_together(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let three = semaphore(&one).acquire_many(3).unwrap();
    assert_eq!(three.slots().len(), 3);
    for client in [&one, &two] {
        assert!(semaphore(client).try_acquire_many(2).unwrap().is_none(), "more than the limit");
    }
    let last = semaphore(&two).try_acquire_many(1).unwrap().expect("one is left");
    last.release().unwrap();
    three.release().unwrap();
    assert_eq!(semaphore(&two).try_acquire_many(LIMIT).unwrap().expect("all are free").slots(), [0, 1, 2, 3]);
}

/// A large request that waits is not overtaken by a small one, in its own client or elsewhere.
pub fn a_large_request_is_not_overtaken(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let (first, second) = (semaphore(&one).acquire_many(2).unwrap(), semaphore(&one).acquire().unwrap());
    let large = semaphore(&two).wait_for_many(3);
    bench.have_places(1, || in_mode(Mode::permits(1, LIMIT).unwrap(), waiting_claim("a")));
    let small = semaphore(&bench.client()).wait();
    waits(bench, &small);
    second.release().unwrap();
    waits(bench, &large);
    waits(bench, &small);
    first.release().unwrap();
    assert_eq!(comes(bench, large).slots().len(), 3);
    assert_eq!(comes(bench, small).slots().len(), 1);
}

/// Some of the permits are given back, and who waits gets them; the others are held on, under new tokens.
pub fn some_are_given_back(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let four = semaphore(&one).acquire_many(4).unwrap();
    let (before, waiter) = (four.tokens(), semaphore(&two).wait_for_many(2));
    waits(bench, &waiter);
    let kept = four.give_back(2).unwrap();
    let got = comes(bench, waiter);
    assert_eq!((kept.slots(), got.slots()), (vec![0, 1], vec![2, 3]));
    let after: BTreeMap<_, _> = kept.tokens().into_iter().chain(got.tokens()).collect();
    assert!(before.iter().all(|(slot, token)| after[slot] > *token), "{before:?} {after:?}");
    [&kept, &got].into_iter().for_each(|guard| guard.verify().unwrap());
    let mut kept = kept;
    for count in [0, 2, 3] {
        let refused = kept.give_back(count).expect_err("none, all, or more than there are");
        assert!(matches!(refused.reason(), Unchanged::Refused(AcquireError::Invalid(_))), "{:?}", refused.reason());
        kept = refused.into_guard();
        kept.verify().unwrap();
    }
    assert_eq!(kept.give_back(1).unwrap().slots(), [0]);
}

/// No permits, and more than there are, are refused whatever is held.
pub fn wrong_numbers_are_invalid(bench: &Bench) {
    let client = bench.client();
    for (limit, count) in [(0, 0), (0, 1), (LIMIT, 0), (LIMIT, LIMIT + 1)] {
        let semaphore = client.semaphore("a", limit, &options(LONG));
        for answer in [semaphore.acquire_many(count).map(Some), semaphore.try_acquire_many(count)] {
            assert!(matches!(answer, Err(AcquireError::Invalid(_))), "{count} of {limit}: {answer:?}");
        }
    }
    assert!(client.semaphore("a", 1, &options(LONG)).try_acquire().unwrap().is_some(), "the name was never used");
}

/// While permits of one limit are held, another limit is an error that changes nothing, in the same client or elsewhere.
pub fn another_limit_is_an_error(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let guard = semaphore(&one).acquire().unwrap();
    for client in [&one, &two] {
        let other = client.semaphore("a", LIMIT + 1, &options(LONG));
        is_in_other_use(other.acquire());
        is_in_other_use(other.try_acquire());
        let error = other.available_permits().unwrap_err().to_string();
        assert!(error.contains("limit \"a\": "), "{error}");
        semaphore(client).try_acquire().unwrap().expect("three are free").release().unwrap();
    }
    guard.verify().unwrap();
    guard.release().unwrap();
    assert!(two.semaphore("a", LIMIT + 1, &options(LONG)).try_acquire().unwrap().is_some(), "it is not in use");
}

/// While a name is in use as a lock, it is no semaphore, and the other way round, in the same client or elsewhere.
pub fn another_kind_is_an_error(bench: &Bench) {
    let clients @ [one, _] = &two_clients(bench);
    let lock = one.acquire("a", &options(LONG)).unwrap();
    clients.iter().for_each(|client| is_in_other_use(semaphore(client).try_acquire()));
    clients.iter().for_each(|client| is_in_other_use(semaphore(client).acquire()));
    lock.verify().unwrap();
    lock.release().unwrap();
    let permit = semaphore(one).acquire().unwrap();
    clients.iter().for_each(|client| is_in_other_use(client.try_acquire("a", &options(LONG))));
    clients.iter().for_each(|client| is_in_other_use(client.read("a", &options(LONG)).acquire()));
    permit.verify().unwrap();
    permit.release().unwrap();
    assert!(one.try_acquire("a", &options(LONG)).unwrap().is_some(), "it is not in use");
}

/// A client that has dropped its last guard can use another limit at once: its own release comes first.
pub fn a_name_is_used_otherwise_right_after_a_drop(bench: &Bench) {
    let client = bench.client();
    let other_limit = client.semaphore("a", LIMIT + 1, &options(LONG));
    for _ in 0..20 {
        drop(semaphore(&client).acquire().unwrap());
        drop(other_limit.acquire_many(2).unwrap());
        drop(semaphore(&client).try_acquire().unwrap().expect("it is free"));
        drop(other_limit.try_acquire().unwrap().expect("it is free"));
    }
}

/// A holder learns of the loss of its permits, and others hold on.
pub fn a_holder_learns_of_its_loss(bench: &Bench) {
    let ([one, two], operator) = (two_clients(bench), bench.bystander());
    if !operator.can_inspect() {
        return;
    }
    let mine = one.semaphore("a", LIMIT, &options(BRIEF)).acquire_many(3).unwrap();
    let other = semaphore(&two).acquire().unwrap();
    operator.revoke("a", mine.token());
    bench.until("the loss is told", || mine.lost().is_some());
    let refused = mine.give_back(1).expect_err("they are lost");
    assert!(matches!(refused.reason(), Unchanged::Lost(_)), "{:?}", refused.reason());
    refused.into_guard().release().expect_err("they are lost");
    other.verify().unwrap();
    assert_eq!(semaphore(&two).try_acquire_many(3).unwrap().expect("they are free").slots().len(), 3);
}

/// Permits are renewed for as long as they are held, also those that are left of more.
pub fn permits_are_renewed(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let ttl = Duration::from_secs(6);
    let guard = one.semaphore("a", LIMIT, &options(ttl)).acquire_many(4).unwrap();
    bench.keep(&guard, ttl, ttl * 4 / 3);
    assert!(semaphore(&two).try_acquire().unwrap().is_none(), "taken from its holder");
    let guard = guard.give_back(1).unwrap();
    bench.keep(&guard, ttl, ttl * 4 / 3);
    assert!(semaphore(&two).try_acquire_many(2).unwrap().is_none(), "taken from its holder");
    guard.release().unwrap();
}

/// Closing a client ends its holds and waits, and leaves nothing behind.
pub fn closing_ends_permits(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let (guard, waiter) = (semaphore(&one).acquire_many(3).unwrap(), semaphore(&one).wait_for_many(2));
    waits(bench, &waiter);
    one.close();
    assert_eq!(guard.lost().map(|lost| lost.reason), Some(LossReason::Closed));
    assert!(matches!(waiter.outcome(), Err(AcquireError::Closed)));
    assert!(semaphore(&two).try_acquire_many(LIMIT).unwrap().is_some(), "something is left");
}
