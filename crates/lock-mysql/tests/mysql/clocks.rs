//! The server's clock is set forward and back while locks are held.

use lock_core::{Fenced, Renewed};
use test_support::MysqlServer;

use crate::support::{
    Client, SHORT, SOON, Session, claim, client, code, granted, is_busy, is_queued, low, new_server, releases, take,
    waiting,
};

/// How the procedures' clock is set: by a variable that has no other use here.
const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
const STEPS: &str = " + 3600000000 * (CAST(@@GLOBAL.default_week_format AS SIGNED) - 3)";

struct Clock(MysqlServer);

impl Clock {
    /// Sets the clock to this hour, from 0 to 7.
    fn set(&self, hour: u8) {
        self.0.execute(&format!("SET GLOBAL default_week_format = {hour}"));
    }

    fn session(&self) -> Session {
        Session::connect(&self.0.url())
    }
}

fn setting() -> (Clock, [Client; 2]) {
    let clock = Clock(new_server());
    clock.set(3);
    let script = include_str!("../../src/schema.sql");
    assert!(script.matches(CLOCK).count() > 8);
    clock.0.execute(&script.replace(CLOCK, &format!("({CLOCK}{STEPS})")));
    let clients = [client(&clock.0.url()), client(&clock.0.url())];
    (clock, clients)
}

#[test]
fn a_clock_that_is_set_forward_ends_leases_and_the_late_holder_is_refused() {
    let (clock, [one, other]) = setting();
    let before = take(&one, &claim("a"));
    clock.set(4);
    let after = take(&other, &claim("a"));
    assert!(after.tokens.low() > before.tokens.high(), "{:?} after {:?}", after.tokens, before.tokens);
    assert_eq!(one.renew(std::slice::from_ref(&before), SOON).unwrap(), [Renewed::NotHeld]);
    assert!(matches!(one.fence(&before, SOON).unwrap(), Fenced::Higher(_)));
    assert_eq!(code(clock.session().begin("a", low(&before))), "LH001");
}

#[test]
fn a_clock_that_is_set_forward_ends_no_fence() {
    let (clock, [one, other]) = setting();
    let before = take(&one, &claim("a"));
    let teller = clock.session();
    teller.begin("a", low(&before)).unwrap();
    clock.set(4);
    let next = waiting("a");
    is_queued(other.acquire(&next, SOON), 1);
    is_busy(one.acquire(&claim("a"), SHORT * 4));
    teller.run("COMMIT").unwrap();
    assert!(take(&other, &next).tokens.low() > before.tokens.high());
}

#[test]
fn a_clock_that_is_set_back_keeps_leases_and_tokens_rise() {
    let (clock, [one, other]) = setting();
    let (first, freed) = (claim("a"), claim("b"));
    let [held, ended] = [&first, &freed].map(|claim| take(&one, claim));
    releases(&one, &freed);
    clock.set(2);
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
