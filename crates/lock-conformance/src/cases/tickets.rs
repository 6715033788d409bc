//! Locks that one guard lets go of, and another one goes on with.

use lock_core::{AcquireError, ErrorKind, LossReason, Ticket};
use lock_host::{HoldError, Permits, Unchanged};

use crate::bench::earliest_end;
use crate::facade::options;
use crate::locks::{Guard, Lock};
use crate::verbs::{self, AMPLE, LONG, claim, waiting_claim};
use crate::{Bench, Client, Fault};

/// A client of this facade, and one of the other.
fn two_clients(bench: &Bench) -> [Client; 2] {
    [bench.client(), bench.client_of(bench.facade().other())]
}

/// What another process would read.
#[track_caller]
fn detached<M: 'static + std::fmt::Debug>(guard: Guard<M>) -> Ticket {
    let before = guard.token();
    let ticket: Ticket = guard.detach().unwrap().expose().parse().unwrap();
    assert!(ticket.fencing_token() >= before && !ticket.valid_for().is_zero());
    ticket
}

/// An attempt to adopt it reports that it is over, and acquires nothing.
#[track_caller]
pub(super) fn is_over<M: 'static + std::fmt::Debug>(lock: &Lock<M>, ticket: &Ticket) {
    let error = lock.adopt(ticket).expect_err("nobody can adopt it any more");
    assert!(matches!(error, AcquireError::TicketOver { .. }), "{error:?}");
}

/// The guard that adopts a ticket holds the lock under a higher token, and like any other.
pub fn a_detached_lock_goes_on_under_a_higher_token(bench: &Bench) {
    let clients @ [one, two] = &two_clients(bench);
    for (before, after) in [(one, two), (two, one), (one, one)] {
        let guard = before.acquire("a", &options(LONG)).unwrap();
        let token = guard.token();
        let ticket = detached(guard);
        for client in clients {
            assert!(client.try_acquire("a", &options(LONG)).unwrap().is_none(), "the lock is not free meanwhile");
        }
        let guard = after.mutex("a", &options(LONG)).adopt(&ticket).unwrap();
        assert!(guard.token() > token);
        guard.verify().unwrap();
        guard.release().unwrap();
        one.try_acquire("a", &options(LONG)).unwrap().expect("it is free").release().unwrap();
    }
}

/// Of all who have the ticket, one gets the lock.
pub fn a_ticket_is_adopted_once(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let [mine, theirs] = [&one, &two].map(|client| client.mutex("a", &options(LONG)));
    let ticket = detached(mine.acquire().unwrap());
    let guard = theirs.adopt(&ticket).unwrap();
    [&mine, &theirs].into_iter().for_each(|lock| is_over(lock, &ticket));
    guard.verify().unwrap();
    guard.release().unwrap();
}

/// A ticket of a lock that was released meanwhile takes nothing, whether the lock is free or somebody else's.
pub fn a_ticket_of_a_released_lock_is_over(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let [mine, theirs] = [&one, &two].map(|client| client.mutex("a", &options(LONG)));
    let ticket = detached(mine.acquire().unwrap());
    mine.adopt(&ticket).unwrap().release().unwrap();
    is_over(&theirs, &ticket);
    let guard = mine.try_acquire().unwrap().expect("an attempt to adopt leaves nothing");
    is_over(&theirs, &ticket);
    guard.verify().unwrap();
    guard.release().unwrap();
}

/// Nobody who waits is let in by a lock that changes hands, and nobody loses the place.
pub fn those_who_wait_keep_their_places(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let first = two.wait_for("a", &options(LONG));
    bench.have_places(1, || waiting_claim("a"));
    let waiters = [first, one.wait_for("a", &options(LONG))];
    (0..20).for_each(|_| bench.pause());
    let ticket = detached(guard);
    (0..20).for_each(|_| bench.pause());
    let guard = one.mutex("a", &options(LONG)).adopt(&ticket).unwrap();
    (0..20).for_each(|_| bench.pause());
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "the lock is held");
    let mut highest = guard.token();
    guard.release().unwrap();
    for waiter in waiters {
        bench.until("the next one has it", || waiter.is_finished());
        let guard = waiter.outcome().unwrap();
        assert!(guard.token() > highest, "in the order in which they came");
        highest = guard.token();
        guard.release().unwrap();
    }
}

/// A ticket that nobody adopts ends with its ttl, and not earlier.
pub fn a_ticket_that_is_not_adopted_ends_with_its_ttl(bench: &Bench) {
    let ([one, two], others) = (two_clients(bench), bench.verbs());
    let guard = one.acquire("a", &options(AMPLE)).unwrap();
    bench.elapse(AMPLE / 3);
    let asked_at = bench.now();
    let ticket = detached(guard);
    assert!(ticket.valid_for() <= AMPLE && ticket.valid_for() > AMPLE * 2 / 3, "it is renewed before");
    let over_at = bench.taken_over(&others, "a", bench.now() + AMPLE);
    assert!(over_at >= earliest_end(asked_at, AMPLE), "over before its time");
    is_over(&two.mutex("a", &options(AMPLE)), &ticket);
}

/// An adopted lease is renewed like any other.
pub fn an_adopted_lease_is_renewed(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let ticket = detached(one.acquire("a", &options(LONG)).unwrap());
    let ttl = std::time::Duration::from_secs(6);
    let guard = two.mutex("a", &options(ttl)).adopt(&ticket).unwrap();
    bench.keep(&guard, ttl, ttl * 4 / 3);
    assert!(one.try_acquire("a", &options(LONG)).unwrap().is_none(), "taken from its holder");
    guard.release().unwrap();
}

/// Who lets go of a lock that was lost learns that, and gets no ticket.
pub fn a_lost_lock_is_not_detached(bench: &Bench) {
    let (client, operator) = (bench.client(), bench.bystander());
    let guard = client.acquire("a", &options(LONG)).unwrap();
    if !operator.can_inspect() {
        return;
    }
    operator.revoke("a", guard.token());
    let refused = guard.detach().expect_err("it is lost");
    assert!(
        matches!(refused.reason(), Unchanged::Lost(lost) if lost.reason == LossReason::Revoked { by: verbs::operator() })
    );
    let released = refused.into_guard().release();
    assert!(matches!(released, Err(HoldError::Lost(_))), "{released:?}");
}

/// If an answer is lost, the one who asked has the lock, and asks in vain for nothing.
pub fn an_adoption_survives_lost_answers(bench: &Bench) {
    if bench.capabilities().check_ability(lock_core::Ability::Replace).is_err() {
        return;
    }
    let ([one, two], bystander) = (two_clients(bench), bench.bystander());
    let ticket = detached(one.acquire("a", &options(LONG)).unwrap());
    let adopting = bench.during(Fault::LoseReplies, || {
        let adopting = two.mutex("a", &options(LONG)).begin_to_adopt(&ticket);
        bench.until("an answer is lost", || bench.faults().fired() > 0);
        adopting
    });
    bench.until("it is adopted", || adopting.is_finished());
    let guard = adopting.outcome().unwrap();
    bystander.denied(&claim("a"));
    guard.verify().unwrap();
    is_over(&one.mutex("a", &options(LONG)), &ticket);
    guard.release().unwrap();
    bystander.take(&claim("a"));
}

/// A reader goes on as one beside other readers, and before a writer that waits. One that shares its lease stays.
pub fn a_reader_goes_on_beside_others(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let read = |client: &Client| client.read("a", &options(LONG));
    let [mine, shares, other] = [&one, &one, &two].map(|client| read(client).acquire().unwrap());
    let refused = mine.detach().expect_err("another guard has the same lease");
    assert!(matches!(refused.reason(), Unchanged::Shared), "{:?}", refused.reason());
    refused.into_guard().release().unwrap();
    let writer = bench.client().mutex("a", &options(LONG)).wait();
    (0..20).for_each(|_| bench.pause());
    let ticket = detached(shares);
    let goes_on = read(&two).adopt(&ticket).unwrap();
    assert!(goes_on.token() > ticket.fencing_token());
    is_over(&read(&one), &ticket);
    other.release().unwrap();
    goes_on.verify().unwrap();
    assert!(!writer.is_finished(), "a writer beside a reader");
    goes_on.release().unwrap();
    bench.until("the writer has it", || writer.is_finished());
    writer.outcome().unwrap().release().unwrap();
}

/// Permits go on with the slots that they have, under higher tokens.
pub fn permits_go_on_with_their_slots(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let [mine, theirs] = [&one, &two].map(|client| client.semaphore("a", 3, &options(LONG)));
    let (first, guard) = (mine.acquire().unwrap(), mine.acquire_many(2).unwrap());
    let before = guard.tokens();
    let ticket = detached(guard);
    first.release().unwrap();
    assert!(theirs.try_acquire_many(2).unwrap().is_none(), "its slots are not free meanwhile");
    let guard = theirs.adopt(&ticket).unwrap();
    for ((slot, old), (same, new)) in before.iter().zip(guard.tokens()) {
        assert!(*slot == same && *old < new);
    }
    is_over(&mine, &ticket);
    guard.release().unwrap();
    mine.acquire_many(3).unwrap().release().unwrap();
}

/// A semaphore that was made with another limit adopts permits only once the limit was changed, as it acquires them.
pub fn permits_are_not_adopted_under_another_limit(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let semaphore = |client: &Client, limit| client.semaphore("a", limit, &options(LONG));
    let ticket = detached(semaphore(&one, 4).acquire_many(2).unwrap());
    is_of_another_limit(&semaphore(&two, 9), &ticket, ["limit 4", "limit 9"]);
    semaphore(&one, 4).set_limit(8).unwrap();
    is_of_another_limit(&semaphore(&two, 9), &ticket, ["limit 8", "limit 9"]);
    let guard = semaphore(&two, 8).adopt(&ticket).unwrap();
    assert_eq!(guard.slots(), [0, 1]);
    guard.release().unwrap();
}

#[track_caller]
fn is_of_another_limit(lock: &Lock<Permits>, ticket: &Ticket, limits: [&str; 2]) {
    let error = lock.adopt(ticket).expect_err("the limit is another one");
    let AcquireError::Backend(error) = error else { panic!("another error: {error:?}") };
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::OtherKind, "{text}");
    assert!(limits.iter().all(|limit| text.contains(limit)) && error.remedy().is_some(), "{text}");
}
