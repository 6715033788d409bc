//! Acquire, renew, release and fence, with time standing still unless it is moved.

use lock_core::{
    BlockingBackend, Certainty, Claim, Effect, ErrorKind, Fenced, FencingToken, Lease, Queueing, Released, Renewed,
    Terms, TokenRange, Width,
};
use lock_host::new_owner;

use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, low, position, secs, ttl};

#[test]
fn one_owner_at_a_time_and_asking_again_changes_nothing_but_the_time() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let mine = claim("a");
    let lease = granted(here.ask(&mine));
    rig.clock.advance(secs(20));
    assert_eq!(busy(there.ask(&impatient("a"))), secs(10));
    assert_eq!(granted(here.ask(&mine)), lease);
    assert_eq!(busy(there.ask(&impatient("a"))), secs(30));
    granted(there.ask(&impatient("b")));
    assert_eq!(here.part(&mine), Released::Released);
    assert!(low(&granted(there.ask(&impatient("a")))) > low(&lease));
}

#[test]
fn waiters_are_served_in_their_order_across_clients() {
    let rig = Rig::new();
    let clients: Vec<_> = (0..4).map(|_| rig.client()).collect();
    let claims: Vec<_> = (1..=4).map(|width| Claim { width: Width::for_waiters(width), ..claim("a") }).collect();
    let mut before = granted(clients[0].ask(&claims[0]));
    for turn in 1..4 {
        assert_eq!(position(clients[turn].ask(&claims[turn])), u32::try_from(turn).unwrap());
    }
    for turn in 1..4 {
        assert_eq!(clients[turn - 1].part(&claims[turn - 1]), Released::Released);
        for later in turn + 1..4 {
            assert_eq!(position(clients[later].ask(&claims[later])), u32::try_from(later - turn).unwrap());
        }
        let lease = granted(clients[turn].ask(&claims[turn]));
        assert!(lease.tokens.low() > before.tokens.high());
        assert_eq!(lease.tokens.high().get() - lease.tokens.low().get(), u64::try_from(turn).unwrap());
        before = lease;
    }
}

#[test]
fn a_free_lock_goes_to_the_first_in_the_queue_even_if_another_client_asks() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&Claim { terms: Terms::exclusive(ttl("5s")), ..claim("a") }));
    let first = claim("a");
    position(client.ask(&first));
    rig.clock.advance(secs(6));
    assert_eq!(busy(client.ask(&impatient("a"))), secs(10));
    let lease = granted(client.ask(&first));
    assert_eq!(lease.owner, first.owner);
}

#[test]
fn a_place_is_lost_unless_it_is_refreshed_and_the_dead_are_skipped() {
    let rig = Rig::new();
    let client = rig.client();
    let holder = claim("a");
    granted(client.ask(&holder));
    let (dead, live) = (claim("a"), claim("a"));
    assert_eq!((position(client.ask(&dead)), position(client.ask(&live))), (1, 2));
    rig.clock.advance(secs(6));
    assert_eq!(position(client.ask(&live)), 2);
    rig.clock.advance(secs(5));
    assert_eq!(position(client.ask(&live)), 1);
    assert_eq!(client.part(&holder), Released::Released);
    granted(client.ask(&live));
    assert_eq!(position(client.ask(&dead)), 1);
    assert_eq!(rig.rows("queue"), 1);
}

#[test]
fn a_place_lasts_as_long_as_its_own_ttl_whatever_its_neighbours_ttls_are() {
    let rig = Rig::new();
    let client = rig.client();
    let holder = claim("a");
    granted(client.ask(&holder));
    let places = ["30s", "1s", "5s"].map(|time| Claim { terms: Terms::exclusive(ttl(time)), ..claim("a") });
    places.iter().zip(1..).for_each(|(place, turn)| assert_eq!(position(client.ask(place)), turn));
    rig.clock.advance(secs(2));
    let last = claim("a");
    assert_eq!(position(client.ask(&last)), 3); // and what is over is cleared
    assert_eq!(rig.rows("queue"), 3);
    client.part(&holder);
    let [first, _, third] = &places;
    granted(client.ask(first));
    client.part(first);
    assert_eq!(granted(client.ask(third)).owner, third.owner);
    assert_eq!(position(client.ask(&last)), 1);
}

#[test]
fn a_lease_that_was_handed_over_lasts_as_long_as_a_place_until_it_is_renewed() {
    let rig = Rig::new();
    let client = rig.client();
    let (holder, waiter) = (claim("a"), claim("a"));
    granted(client.ask(&holder));
    position(client.ask(&waiter));
    client.part(&holder);
    assert_eq!(busy(client.ask(&impatient("a"))), secs(10));
    let lease = granted(client.ask(&waiter));
    assert_eq!(client.extend(&lease), Renewed::Renewed { valid_for: secs(30), wanted: false });
    assert_eq!(busy(client.ask(&impatient("a"))), secs(30));
}

#[test]
fn a_release_touches_only_its_own_hold_or_place() {
    let rig = Rig::new();
    let client = rig.client();
    let (holder, waiter, stranger) = (claim("a"), claim("a"), claim("a"));
    assert_eq!(client.part(&stranger), Released::NotHeld);
    granted(client.ask(&holder));
    position(client.ask(&waiter));
    assert_eq!(client.part(&stranger), Released::NotHeld);
    assert_eq!(client.part(&waiter), Released::Left);
    assert_eq!(client.part(&waiter), Released::NotHeld);
    assert_eq!(client.part(&holder), Released::Released);
    assert_eq!(client.part(&holder), Released::NotHeld);
    assert_eq!((rig.rows("locks"), rig.rows("queue")), (0, 0));
}

#[test]
fn a_claim_that_does_not_queue_any_more_loses_its_place() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&claim("a")));
    let waiter = claim("a");
    position(client.ask(&waiter));
    busy(client.ask(&Claim { queueing: Queueing::Unwanted, ..waiter.clone() }));
    assert_eq!(client.part(&waiter), Released::NotHeld);
}

#[test]
fn an_expired_hold_is_not_held_and_its_release_passes_it_on() {
    let rig = Rig::new();
    let client = rig.client();
    let (holder, waiter) = (Claim { terms: Terms::exclusive(ttl("5s")), ..claim("a") }, claim("a"));
    let lease = granted(client.ask(&holder));
    position(client.ask(&waiter));
    rig.clock.advance(secs(5));
    assert_eq!(client.extend(&lease), Renewed::NotHeld);
    assert_eq!(client.part(&holder), Released::NotHeld);
    let passed_on = client.holder(&waiter.name, WITHIN).unwrap().unwrap();
    assert_eq!(passed_on.remaining, Some(secs(10)));
    granted(client.ask(&waiter));
}

#[test]
fn a_claim_that_was_given_up_is_refused_when_it_arrives_late() {
    let rig = Rig::new();
    let client = rig.client();
    let ghost = Claim { terms: Terms::exclusive(ttl("1s")), ..claim("a") };
    let given_up = ghost.release(Certainty::Unknown);
    assert_eq!(client.release(&given_up, WITHIN).unwrap(), Released::NotHeld);
    let error = client.refusal(&ghost);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
    assert_eq!(rig.rows("locks"), 0);
    granted(client.ask(&Claim { terms: Terms::exclusive(ttl("1s")), owner: new_owner().unwrap(), ..ghost.clone() }));
    granted(client.ask(&Claim { name: "b".parse().unwrap(), ..ghost.clone() }));
    rig.clock.advance(secs(9));
    client.refusal(&ghost);
    rig.clock.advance(secs(1));
    granted(client.ask(&ghost));
}

#[test]
fn a_renewal_answers_for_each_lease_and_never_creates() {
    let rig = Rig::new();
    let client = rig.client();
    let held = granted(client.ask(&claim("a")));
    let wrong_range = Lease { tokens: TokenRange::above(low(&held), Width::ONE).unwrap(), ..held.clone() };
    let wrong_owner = Lease { owner: new_owner().unwrap(), ..held.clone() };
    let nowhere = Lease { name: "b".parse().unwrap(), ..held.clone() };
    let answers = client.renew(&[wrong_range, held, wrong_owner, nowhere], WITHIN).unwrap();
    let renewed = Renewed::Renewed { valid_for: secs(30), wanted: false };
    assert_eq!(answers, [Renewed::NotHeld, renewed, Renewed::NotHeld, Renewed::NotHeld]);
    assert_eq!(rig.rows("locks"), 1);
    assert_eq!(client.renew(&[], WITHIN).unwrap(), []);
}

#[test]
fn a_fence_tells_the_present_grant_from_an_older_one() {
    let rig = Rig::new();
    let client = rig.client();
    let fence = |lease: &Lease| client.fence(lease, WITHIN).unwrap();
    let first = Claim { terms: Terms::exclusive(ttl("5s")), ..claim("a") };
    let old = granted(client.ask(&first));
    assert_eq!(fence(&old), Fenced::Acknowledged);
    rig.clock.advance(secs(5));
    assert_eq!(fence(&old), Fenced::NotHeld);
    let new = granted(client.ask(&claim("a")));
    assert_eq!(fence(&old), Fenced::Higher(new.tokens.low()));
    assert_eq!(fence(&Lease { owner: new_owner().unwrap(), ..new.clone() }), Fenced::NotHeld);
    assert_eq!(fence(&new), Fenced::Acknowledged);
}

#[test]
fn tokens_come_from_one_counter_that_keeps_up_with_the_wall_clock() {
    let rig = Rig::new();
    let client = rig.client();
    let a = granted(client.ask(&Claim { width: Width::MAX, ..claim("a") }));
    let b = granted(rig.client().ask(&claim("b")));
    assert!(b.tokens.low() > a.tokens.high());
    for lease in [a, b] {
        let micros = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let age = micros.abs_diff(u128::from(low(&lease)));
        assert!(age < 60_000_000, "{age} us from the wall clock");
    }
    // Tokens that are drawn faster than the clock runs rise one by one.
    let ahead = 4_000_000_000_000_000_u64; // the year 2096
    rig.raw().execute("UPDATE counter SET last = ?1", [ahead.cast_signed()]).unwrap();
    let c = granted(client.ask(&Claim { width: Width::MAX, ..claim("c") }));
    assert_eq!((low(&c), low(&granted(client.ask(&claim("d"))))), (ahead + 1, c.tokens.high().get() + 1));
}

#[test]
fn a_store_that_has_forgotten_catches_up_with_the_wall_clock() {
    let rig = Rig::new();
    let client = rig.client();
    let floor = granted(client.ask(&claim("a"))).tokens.high();
    rig.raw().execute("UPDATE counter SET last = 7", ()).unwrap();
    // Even for a client that does not know that it has.
    let lease = granted(rig.client().ask(&claim("b")));
    assert!(lease.tokens.low() > floor);
    // The store knows nothing better than the wall clock; the client refuses the grant.
    let future = FencingToken::new(low(&lease) * 2).unwrap();
    assert!(granted(client.ask(&Claim { floor: Some(future), ..claim("c") })).tokens.high() < future);
}

#[test]
fn tokens_that_are_used_up_change_nothing() {
    let rig = Rig::new();
    let client = rig.client();
    rig.raw().execute("UPDATE counter SET last = ?1", [(1_i64 << 53) - 2]).unwrap();
    let wide = Claim { width: Width::MAX, ..claim("a") };
    let error = client.refusal(&wide);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
    assert!(!error.kind().is_transient());
    assert_eq!(rig.rows("locks"), 0);
    assert_eq!(granted(client.ask(&claim("a"))).tokens.low(), FencingToken::MAX);
}

#[test]
fn expired_rows_are_deleted_by_later_requests() {
    let rig = Rig::new();
    let client = rig.client();
    for number in 0..60 {
        let job = Claim { terms: Terms::exclusive(ttl("1s")), ..claim(&format!("job:{number:03}")) };
        granted(client.ask(&job));
        position(client.ask(&Claim { owner: new_owner().unwrap(), ..job.clone() }));
        let given_up = claim("other").release(Certainty::Unknown);
        client.release(&given_up, WITHIN).unwrap();
    }
    assert_eq!(["locks", "queue", "tombstones"].map(|table| rig.rows(table)), [60, 60, 60]);
    rig.clock.advance(secs(31));
    for number in 100..120 {
        granted(client.ask(&claim(&format!("job:{number:03}"))));
    }
    assert_eq!(["locks", "queue", "tombstones"].map(|table| rig.rows(table)), [20, 0, 0]);
}
