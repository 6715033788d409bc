//! The limit of a semaphore can be changed while permits are held and waited for.

use lock_core::limit::{Act, LimitError, Usage};
use lock_core::{AcquireError, BackendError, Claim, Effect, ErrorKind, Fenced, Lease, Limit, Mode, Released, Renewed};
use lock_host::Permits;

use super::events::grants_told;
use crate::facade::options;
use crate::locks::Lock;
use crate::verbs::{LONG, claim, in_mode, waiting_claim};
use crate::{Bench, Client, Verbs};

fn permits(limit: u32, count: u32) -> Claim {
    in_mode(Mode::permits(count, limit).unwrap(), claim("a"))
}

fn waiting_permits(limit: u32, count: u32) -> Claim {
    in_mode(Mode::permits(count, limit).unwrap(), waiting_claim("a"))
}

fn limit(number: u32) -> Limit {
    Limit::new(number).unwrap()
}

/// Sets the limit as a client that knows another one. Returns how many are used.
#[track_caller]
fn set(verbs: &Verbs, known: u32, new: u32) -> u32 {
    let usage = verbs.limit(known, Act::Set(limit(new))).unwrap();
    assert_eq!(usage.limit, limit(new));
    usage.used
}

/// Takes permits under this limit, which must be what the lease says.
#[track_caller]
fn take_under(verbs: &Verbs, number: u32, claim: &Claim) -> Lease {
    let lease = verbs.take(claim);
    assert_eq!(lease.terms.mode.limit(), Some(limit(number)), "{lease:?}");
    assert!(lease.slots.get().iter().all(|slot| *slot < number), "{lease:?}");
    assert_eq!(lease.slots.get().len(), usize::try_from(claim.terms.mode.count()).unwrap(), "{lease:?}");
    lease
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(answer: Result<T, BackendError>, words: [&str; 2]) {
    let error = answer.unwrap_err();
    let text = error.to_string();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{text}");
    assert!(words.iter().all(|word| text.contains(word)) && error.remedy().is_some(), "{text} names not {words:?}");
}

/// Waiters that fit now are granted at once, in their order.
pub fn a_raised_limit_serves_those_who_wait(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let waiters = [1, 2, 2, 1].map(|count| waiting_permits(2, count));
    one.take(&permits(2, 2));
    let told = grants_told(&two);
    waiters.iter().for_each(|waiter| _ = two.queued(waiter));
    set(&one, 2, 5);
    let served = Ok(Usage { limit: limit(5), used: 5 });
    bench.until("the first two are served", || one.limit(2, Act::Look) == served);
    told.are(bench, &[&waiters[0], &waiters[1]]);
    let leases = [&waiters[0], &waiters[1]].map(|waiter| take_under(&two, 5, waiter));
    let mut slots = leases.each_ref().map(|lease| lease.slots.get()).concat();
    slots.sort_unstable();
    assert_eq!(slots, [2, 3, 4]);
    told.agree_with(&leases);
    [&waiters[2], &waiters[3]].into_iter().for_each(|waiter| two.denied(waiter));
}

/// Nobody loses a permit, and nothing is granted until the limit is no longer exceeded.
pub fn a_lowered_limit_takes_nothing_away(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (large, small) = (permits(4, 3), permits(4, 1));
    let leases = [&large, &small].map(|claim| one.take(claim));
    assert_eq!(set(&two, 4, 2), 4);
    for lease in &leases {
        assert_eq!(one.fence(lease), Fenced::Acknowledged);
        assert!(matches!(one.renew(lease), Renewed::Renewed { .. }), "{lease:?}");
    }
    two.refused(&permits(2, 1));
    assert_eq!(one.release(&small), Released::Released);
    let waiter = waiting_permits(4, 2);
    assert_eq!(two.queued(&waiter), 1, "three are more than two");
    assert_eq!(one.release(&large), Released::Released);
    assert_eq!(take_under(&two, 2, &waiter).slots.get(), [0, 1]);
    two.refused(&permits(4, 1));
}

/// A new grant has none of the slots that a higher limit had, although they are free, or another holder still has one of them.
pub fn slots_stay_below_the_limit_in_force(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (low, high) = (permits(4, 3), permits(4, 1));
    one.take(&low);
    assert_eq!(one.take(&high).slots.get(), [3]);
    set(&two, 4, 2);
    assert_eq!(one.release(&low), Released::Released);
    let next = permits(2, 1);
    assert_eq!(take_under(&two, 2, &next).slots.get(), [0]);
    two.refused(&permits(2, 1));
    assert_eq!(one.release(&high), Released::Released);
    assert_eq!(take_under(&one, 2, &permits(2, 1)).slots.get(), [1]);
}

/// A client that knows the oldest of them is served, and one that knows an even older one is refused.
pub fn the_eight_latest_limits_that_were_replaced_are_known(bench: &Bench) {
    let one = bench.verbs();
    (1..=9).for_each(|known| _ = set(&one, known, known + 1));
    take_under(&one, 10, &permits(2, 1));
    is_refused(one.try_acquire(&permits(1, 1)), ["limit 10", "limit 1"]);
}

/// Clients that know an earlier limit are served under the one in force; others are refused, with advice on how to change it.
pub fn a_limit_that_was_replaced_stands_for_the_one_in_force(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    take_under(&one, 2, &permits(2, 2));
    set(&two, 3, 4);
    set(&two, 4, 6);
    for known in [2, 3, 4, 6] {
        take_under(&one, 6, &permits(known, 1));
        is_refused(two.try_acquire(&permits(5, 1)), ["limit 6", "limit 5"]);
    }
    two.refused(&permits(2, 1));
    let refusal = two.try_acquire(&permits(5, 1)).unwrap_err().to_string();
    assert!(refusal.contains("set_limit"), "{refusal}");
}

/// The store knows the limit when nobody holds, and when the first one comes with an earlier limit.
pub fn a_limit_that_was_set_outlives_the_holders(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    assert_eq!(set(&two, 2, 4), 0, "nobody holds");
    is_refused(one.try_acquire(&permits(3, 1)), ["limit 4", "limit 3"]);
    let all = permits(2, 2);
    take_under(&one, 4, &all);
    take_under(&two, 4, &permits(4, 2));
    one.refused(&permits(2, 1));
    assert_eq!(one.release(&all), Released::Released);
    take_under(&one, 4, &permits(2, 1));
}

/// A claim that can never be served is refused, has no place, and is passed.
pub fn a_claim_above_the_limit_is_refused_and_blocks_nobody(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (held, large, small) = (permits(4, 2), waiting_permits(4, 3), waiting_permits(4, 2));
    one.take(&held);
    assert_eq!([two.queued(&large), two.queued(&small)], [1, 2]);
    set(&one, 4, 2);
    assert_eq!(one.release(&held), Released::Released);
    take_under(&two, 2, &small);
    is_refused(two.try_acquire(&large), ["is 2", "3 permits"]);
    assert_eq!(two.release(&large), Released::NotHeld, "it has no place");
    is_refused(one.try_acquire(&permits(4, 4)), ["is 2", "4 permits"]);
}

/// Under a higher limit, the waiter may come back, behind the others.
pub fn a_place_that_a_limit_took_away_is_taken_anew(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (held, large) = (permits(4, 4), waiting_permits(4, 3));
    let [first, last] = [(); 2].map(|()| waiting_permits(4, 2));
    one.take(&held);
    [&first, &large, &last].iter().for_each(|waiter| _ = two.queued(waiter));
    [2, 4].iter().for_each(|limit| _ = set(&one, 4, *limit));
    two.queued(&large);
    assert_eq!(one.release(&held), Released::Released);
    [&first, &last].iter().for_each(|waiter| _ = take_under(&two, 4, waiter));
    two.denied(&large);
}

/// A holder asks again, gives back and releases, whatever the limit is by then.
pub fn a_lease_goes_on_under_another_limit(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (first, second) = (permits(4, 1), permits(4, 3));
    one.take(&first);
    let before = one.take(&second);
    assert_eq!(before.slots.get(), [1, 2, 3]);
    set(&two, 4, 2);
    let again = one.take(&second);
    assert_eq!((&again.slots, again.tokens), (&before.slots, before.tokens));
    assert!(again.terms.mode.limit() >= Some(limit(4)), "a lease has no slot at its limit or above: {again:?}");
    let fewer = Claim { replaces: Some(second.owner), ..permits(4, 2) };
    let lease = one.take(&fewer);
    assert_eq!(lease.slots.get(), [1, 2]);
    assert_eq!(one.take(&fewer), lease, "asked again");
    assert!(matches!(one.renew(&lease), Renewed::Renewed { .. }));
    two.refused(&permits(2, 1));
    assert_eq!(one.release(&fewer), Released::Released);
    two.refused(&permits(4, 2));
    assert_eq!(one.release(&first), Released::Released);
    take_under(&two, 2, &permits(2, 2));
}

/// A request that is repeated, or comes again later, changes nothing; and a limit can be set back.
pub fn a_limit_can_be_set_again(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    take_under(&one, 2, &permits(2, 1));
    for (known, new) in [(2, 4), (2, 4), (4, 4), (4, 2), (4, 2)] {
        assert_eq!(set(&two, known, new), 1);
    }
    take_under(&one, 2, &permits(4, 1));
    two.refused(&permits(2, 1));
    is_refused(two.try_acquire(&permits(3, 1)), ["limit 2", "limit 3"]);
}

/// What is held as a lock is not changed.
pub fn a_lock_has_no_limit(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let holder = claim("a");
    let lease = one.take(&holder);
    is_refused(two.limit(4, Act::Set(limit(2))), ["lock", "semaphore"]);
    is_refused(two.limit(4, Act::Look), ["lock", "semaphore"]);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert_eq!(one.release(&holder), Released::Released);
    take_under(&two, 3, &permits(3, 3));
}

/// Limit and use are shown, also of a name that nobody holds.
pub fn permits_are_counted(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let look = |known| two.limit(known, Act::Look);
    let usage = |number, used| Ok(Usage { limit: limit(number), used });
    assert_eq!(look(4), usage(4, 0));
    let (first, second) = (permits(4, 1), permits(4, 2));
    [&first, &second].into_iter().for_each(|claim| _ = one.take(claim));
    two.queued(&waiting_permits(4, 2));
    assert_eq!(look(4), usage(4, 3), "a waiter takes none");
    is_refused(look(5), ["limit 4", "limit 5"]);
    set(&one, 4, 2);
    assert_eq!((look(4), look(2)), (usage(2, 3), usage(2, 3)));
    is_refused(look(5), ["limit 2", "limit 5"]);
    assert_eq!(one.release(&second), Released::Released);
    assert_eq!(look(2), usage(2, 1), "the waiter does not fit yet");
    assert_eq!(one.release(&first), Released::Released);
    bench.until("the waiter is served", || look(2) == usage(2, 2));
}

fn semaphore(client: &Client, limit: u32) -> Lock<Permits> {
    client.semaphore("a", limit, &options(LONG))
}

/// Old and new processes work side by side while the limit is changed, in either facade.
pub fn a_deployment_changes_the_limit(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client_of(bench.facade().other()));
    let (old, new) = (semaphore(&one, 2), semaphore(&two, 4));
    let first = old.acquire_many(2).unwrap();
    let waiter = old.wait();
    (0..20).for_each(|_| bench.pause());
    assert!(!waiter.is_finished(), "it does not wait");
    new.set_limit(4).unwrap();
    bench.until("the waiter has its permit", || waiter.is_finished());
    let second = waiter.outcome().unwrap();
    assert_eq!((second.slots(), new.available_permits().unwrap()), (vec![2], 1));
    let second = new.adopt(&second.detach().unwrap()).unwrap();
    assert_eq!(second.slots(), [2]);
    // Both limits are used in one client, too.
    let third = semaphore(&one, 4).try_acquire().unwrap().expect("one is left");
    assert_eq!((third.slots(), old.available_permits().unwrap()), (vec![3], 0));
    assert!(old.try_acquire().unwrap().is_none(), "more than the limit");
    new.set_limit(1).unwrap();
    assert_eq!([&new, &old].map(|semaphore| semaphore.limit().unwrap()), [1, 1]);
    let first = first.give_back(1).unwrap();
    assert_eq!((first.slots(), new.available_permits().unwrap()), (vec![0], 0));
    [&first, &second, &third].into_iter().for_each(|guard| guard.verify().unwrap());
    [second, third].into_iter().for_each(|guard| guard.release().unwrap());
    assert!(old.try_acquire().unwrap().is_none(), "more than the limit");
    first.release().unwrap();
    assert_eq!(old.try_acquire().unwrap().expect("one is free").slots(), [0]);
}

/// A waiter for more permits than there are by now gets an error, and not those behind it.
pub fn a_waiter_that_can_never_be_served_gets_an_error(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client_of(bench.facade().other()));
    let guard = semaphore(&one, 4).acquire_many(4).unwrap();
    let (large, small) = (semaphore(&two, 4).wait_for_many(3), semaphore(&bench.client(), 4).wait());
    (0..20).for_each(|_| bench.pause());
    semaphore(&one, 4).set_limit(2).unwrap();
    bench.until("the waiter has its error", || large.is_finished());
    let Err(AcquireError::Backend(error)) = large.outcome() else { panic!("it is served") };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
    assert!(!small.is_finished(), "more than the limit");
    guard.release().unwrap();
    bench.until("the waiter has its permit", || small.is_finished());
    assert_eq!(small.outcome().unwrap().slots(), [0]);
}

/// No permits and too many are refused before anything is asked, and a closed client says so.
pub fn wrong_limits_are_invalid(bench: &Bench) {
    let client = bench.client();
    for (known, new) in [(4, 0), (4, u32::MAX), (0, 4)] {
        let answer = semaphore(&client, known).set_limit(new);
        assert!(matches!(answer, Err(LimitError::Invalid(_))), "{known} {new}: {answer:?}");
    }
    assert_eq!(semaphore(&client, 3).available_permits(), Ok(3), "nothing was set");
    client.close();
    assert_eq!(semaphore(&client, 3).available_permits(), Err(LimitError::Closed));
}
