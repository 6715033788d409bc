//! Tokens rise, whatever happens.

use lock_core::{AcquireError, Answer, Certainty, Claim, FencingToken, Released, TokenRange, Width};

use crate::facade::options;
use crate::verbs::{BRIEF, LONG, claim, lasting};
use crate::{Bench, Fault};

/// The token of every holder is above that of the one before.
pub fn tokens_rise_over_releases(bench: &Bench) {
    let clients = [bench.verbs(), bench.verbs()];
    let mut highest = 0;
    for client in clients.iter().cycle().take(20) {
        let mine = claim("a");
        let lease = client.take(&mine);
        assert!(lease.tokens.low().get() > highest, "{} after {highest}", lease.tokens);
        highest = lease.tokens.high().get();
        assert_eq!(client.release(&mine), Released::Released);
    }
}

/// Also if the earlier holder never released the lock.
pub fn tokens_rise_over_expiry(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let first = one.take(&lasting(BRIEF, claim("a")));
    bench.outlive(BRIEF);
    let second = two.take(&claim("a"));
    assert!(second.tokens.low() > first.tokens.high(), "{} after {}", second.tokens, first.tokens);
}

/// Also if several names and clients take turns.
pub fn tokens_rise_for_each_name_whoever_asks(bench: &Bench) {
    let clients = [bench.verbs(), bench.verbs(), bench.verbs()];
    let mut highest = [0; 4];
    for (turn, client) in clients.iter().cycle().take(36).enumerate() {
        let name = turn % highest.len();
        let mine = claim(&format!("a{name}"));
        let token = client.take(&mine).tokens.low().get();
        assert!(token > highest[name], "{token} after {}", highest[name]);
        highest[name] = token;
        assert_eq!(client.release(&mine), Released::Released);
    }
}

/// A claim for several tokens gets that many, and no other claim gets any of them.
pub fn a_width_draws_so_many_tokens(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    for width in [Width::ONE, Width::for_waiters(7), Width::MAX] {
        let wide = Claim { width, ..claim("a") };
        let lease = one.take(&wide);
        let drawn = lease.tokens.high().get() - lease.tokens.low().get() + 1;
        assert_eq!(drawn, width.get(), "{}", lease.tokens);
        assert_eq!(one.release(&wide), Released::Released);
        let next = claim("a");
        let after = two.take(&next);
        assert!(after.tokens.low() > lease.tokens.high(), "{} after {}", after.tokens, lease.tokens);
        assert_eq!(two.release(&next), Released::Released);
    }
}

/// A store may raise its tokens to the floor of a claim or leave that to its client, but whatever it grants then is
/// above everything that it granted before, to any client.
pub fn a_floor_never_lowers_tokens(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mut highest = 0;
    let above = |number: u64| Some(FencingToken::new(number + 1000).unwrap());
    for round in 0..3 {
        for (client, floor) in [(&one, None), (&two, above(highest)), (&one, FencingToken::new(1).ok())] {
            let mine = Claim { floor, ..claim("a") };
            let lease = client.take(&mine);
            assert!(lease.tokens.low().get() > highest, "round {round}: {} after {highest}", lease.tokens);
            highest = lease.tokens.high().get();
            assert_eq!(client.release(&mine), Released::Released);
        }
    }
}

/// A store that restarts with its data grants higher tokens than before.
pub fn tokens_rise_over_a_restart_with_data(bench: &Bench) {
    rise_over(bench, Fault::RestartWithData);
}

/// A store that restarts without its data grants higher tokens than before.
pub fn tokens_rise_over_a_restart_without_data(bench: &Bench) {
    rise_over(bench, Fault::RestartEmpty);
}

/// The client that saw the earlier token is gone, so no claim tells the store.
fn rise_over(bench: &Bench, restart: Fault) {
    let before = {
        let one = bench.verbs();
        let mine = Claim { width: Width::MAX, ..claim("a") };
        let lease = one.take(&mine);
        assert_eq!(one.release(&mine), Released::Released);
        lease.tokens
    };
    bench.during(restart, || {});
    // Just after a restart, some nodes of a quorum may not answer yet.
    let (verbs, mut after) = (bench.verbs(), None);
    bench.until("the lock is granted again", || {
        let mine = claim("a");
        after = verbs.try_acquire(&mine).ok().and_then(|answer| granted_tokens(&answer));
        if after.is_none() {
            // What it may have at some nodes of a quorum must not be in the way of the next one.
            verbs.try_release(&mine, Certainty::Unknown).ok();
        }
        after.is_some()
    });
    assert!(after.is_some_and(|after| after.low() > before.high()), "{after:?} after {before}");
}

fn granted_tokens(answer: &Answer) -> Option<TokenRange> {
    match answer {
        Answer::Granted { lease, .. } => Some(lease.tokens),
        Answer::Queued { .. } | Answer::Busy { .. } => None,
    }
}

/// A client that had a token of a store that then lost its data never hands out a lower one.
pub fn a_store_that_forgot_is_not_believed(bench: &Bench) {
    let client = bench.client();
    let guard = client.acquire("a", &options(LONG)).unwrap();
    let before = guard.token();
    guard.release().unwrap();
    bench.during(Fault::RestartEmpty, || {});
    // It may take a client a while to find the store again.
    let again = bench.insist(|| {
        let waiter = client.wait_for("a", &options(LONG));
        bench.until("the wait is over", || waiter.is_finished());
        match waiter.outcome() {
            Err(AcquireError::Backend(error)) => Err(error),
            outcome => Ok(outcome),
        }
    });
    match again {
        Ok(guard) => assert!(guard.token() > before, "{} after {before}", guard.token()),
        Err(AcquireError::Forgotten { floor, .. }) => assert_eq!(floor, before),
        Err(other) => panic!("{other}"),
    }
}
