//! The server's clock is set forward and back while locks are held.

use std::time::Duration;

use lock_core::{Fenced, Renewed};

use crate::support::{
    Client, Place, SOON, Session, claim, code, granted, is_busy, is_queued, low, releases, take, waiting,
};

/// How the functions' clock is set: by what one row says.
const STEPS: [(&str, &str); 2] = [
    (
        "CREATE FUNCTION leasehold.clock()",
        "CREATE TABLE leasehold.step AS SELECT 0::bigint AS by; CREATE FUNCTION leasehold.clock()",
    ),
    (
        "AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;",
        "AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT by FROM leasehold.step) $$;",
    ),
];
const HOUR: i64 = 3_600_000_000;

struct Clock(Session);

impl Clock {
    fn of(place: &Place) -> Self {
        Self(place.session())
    }

    /// Sets the clock forward, or back.
    fn step(&self, micros: i64) {
        self.0.run(&format!("UPDATE step SET by = by + {micros}")).unwrap();
    }
}

fn setting() -> (Place, Clock, [Client; 2]) {
    let place = Place::twin(&STEPS);
    let (clock, clients) = (Clock::of(&place), [place.client(), place.client()]);
    (place, clock, clients)
}

#[test]
fn a_clock_that_is_set_forward_ends_leases_and_the_late_holder_is_refused() {
    let (place, clock, [one, other]) = setting();
    let first = claim("a");
    let before = take(&one, &first);
    clock.step(HOUR);
    let after = take(&other, &claim("a"));
    assert!(after.tokens.low() > before.tokens.high(), "{:?} after {:?}", after.tokens, before.tokens);
    assert_eq!(one.renew(std::slice::from_ref(&before), SOON).unwrap(), [Renewed::NotHeld]);
    assert!(matches!(one.fence(&before, SOON).unwrap(), Fenced::Higher(_)));
    assert_eq!(code(place.session().begin("a", low(&before))), "LH001");
}

#[test]
fn a_clock_that_is_set_forward_ends_no_fence() {
    let (place, clock, [one, other]) = setting();
    let before = take(&one, &claim("a"));
    let teller = place.session();
    teller.begin("a", low(&before)).unwrap();
    clock.step(HOUR);
    let next = waiting("a");
    is_queued(other.acquire(&next, SOON), 1);
    is_busy(one.acquire(&claim("a"), Duration::from_millis(500)));
    teller.run("COMMIT").unwrap();
    assert!(take(&other, &next).tokens.low() > before.tokens.high());
}

#[test]
fn a_clock_that_is_set_back_keeps_leases_and_tokens_rise() {
    let (_place, clock, [one, other]) = setting();
    let (first, freed) = (claim("a"), claim("b"));
    let [held, ended] = [&first, &freed].map(|claim| take(&one, claim));
    releases(&one, &freed);
    clock.step(-HOUR);
    is_busy(other.acquire(&claim("a"), SOON));
    assert!(matches!(one.renew(&[held], SOON).unwrap()[..], [Renewed::Renewed { .. }]));
    let second = waiting("a");
    is_queued(other.acquire(&second, SOON), 1);
    releases(&one, &first);
    granted(other.acquire(&second, SOON));

    let mut highest = ended.tokens.high();
    for _ in 0..3 {
        let next = claim("b");
        let lease = take(&other, &next);
        assert!(lease.tokens.low() > highest, "{:?} is not above {highest}", lease.tokens);
        highest = lease.tokens.high();
        releases(&other, &next);
    }
}
