//! Failures are reported as what they are, in time, and recovery needs no help.

use std::time::{Duration, Instant};

use lock_core::{
    AcquireError, Answer, BackendError, Certainty, Effect, EntriesEnd, ErrorKind, Fenced, OnUnavailable, Operation,
    Renewed, TokenRange,
};

use crate::facade::options;
use crate::verbs::{LONG, claim};
use crate::{Bench, Fault, Verbs};

/// Sends each verb to a store that does not answer, and returns the errors.
fn ask_everything(verbs: &Verbs) -> [BackendError; 4] {
    let mine = claim("c");
    let tokens = TokenRange::above(0, mine.width).unwrap();
    let lease = mine.lease(tokens);
    [
        verbs.try_acquire(&mine).expect_err("nobody can know"),
        verbs.try_renew(std::slice::from_ref(&lease)).expect_err("nobody can know"),
        verbs.try_release(&mine, Certainty::Answered).expect_err("nobody can know"),
        verbs.try_fence(&lease).expect_err("nobody can know"),
    ]
}

/// A store that cannot be reached does not say that a lock is held, nor that it is free.
pub fn unreachable_is_not_busy(bench: &Bench) {
    let (verbs, client, bystander) = (bench.verbs(), bench.client(), bench.bystander());
    bystander.take(&claim("a"));
    verbs.refused(&claim("a"));
    // Shorter than a session lasts, whose end is another error.
    let hasty = verbs.within(Duration::from_secs(2));
    bench.during(Fault::Cut, || {
        let error = hasty.try_acquire(&claim("a")).expect_err("nobody can know");
        assert!(matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout), "{error}");
        let outcome = client.try_acquire("a", &options(LONG));
        assert!(matches!(outcome, Err(AcquireError::Backend(_))), "{outcome:?}");
    });
}

/// If an error says that nothing happened, nothing has.
pub fn an_effect_of_none_is_true(bench: &Bench) {
    let (verbs, bystander) = (bench.verbs(), bench.bystander());
    let mine = claim("a");
    verbs.release(&mine);
    let effects = bench.during(Fault::Cut, || {
        // The first finds the broken connection, the second cannot make another.
        [(); 2].map(|()| verbs.try_acquire(&mine).expect_err("nobody can know").effect())
    });
    if effects == [Effect::None; 2] {
        bystander.take(&claim("a"));
    } else {
        bench.insist(|| verbs.try_release(&mine, Certainty::Unknown));
        bystander.take(&claim("a"));
    }
}

/// An error names its operation and its backend, and its kind says that it is transient.
pub fn an_error_says_what_was_being_done(bench: &Bench) {
    let verbs = bench.verbs();
    let backend = verbs.capabilities().backend;
    let errors = bench.during(Fault::Cut, || ask_everything(&verbs));
    let operations = [Operation::Acquire, Operation::Renew, Operation::Release, Operation::Fence];
    for (error, operation) in errors.into_iter().zip(operations) {
        assert_eq!(error.operation(), operation, "{error}");
        assert!(error.kind().is_transient(), "{error}");
        assert!(error.to_string().starts_with(&format!("{backend} {operation}: ")), "{error}");
    }
}

/// After an outage the same client continues, with the leases that it has.
pub fn a_client_recovers_by_itself(bench: &Bench) {
    recover_from(bench, Fault::Cut);
}

/// The same after a store that did not answer.
pub fn a_client_recovers_from_a_store_that_hung(bench: &Bench) {
    recover_from(bench, Fault::Hang);
}

fn recover_from(bench: &Bench, fault: Fault) {
    let (verbs, mine) = (bench.verbs(), claim("a"));
    let (lease, hasty) = (verbs.take(&mine), verbs.clone().within(Duration::from_millis(500)));
    bench.during(fault, || hasty.try_renew(std::slice::from_ref(&lease)).expect_err("nobody can know"));
    assert_eq!(bench.insist(|| verbs.try_fence(&lease)), Fenced::Acknowledged);
    let renewed = bench.insist(|| verbs.try_renew(std::slice::from_ref(&lease)));
    assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{renewed:?}");
    bench.insist(|| verbs.try_release(&mine, Certainty::Answered));
    bench.insist(|| verbs.try_acquire(&claim("b")));
}

/// A user who waits for the store gets no error from an outage that passes.
pub fn a_waiter_waits_out_an_outage(bench: &Bench) {
    let client = bench.client();
    let waiter = bench.during(Fault::Cut, || {
        let waiter = client.wait_for("a", &options(LONG).on_unavailable(OnUnavailable::Wait));
        bench.until("the outage is felt", || bench.faults().fired() > 0);
        waiter
    });
    bench.until("the lock is acquired", || waiter.is_finished());
    waiter.outcome().unwrap().verify().unwrap();
}

/// A store that does not answer delays no call for much longer than its limit.
pub fn nothing_takes_longer_than_it_may(bench: &Bench) {
    let (verbs, client) = (bench.verbs(), bench.client());
    let mine = claim("c");
    let lease = verbs.take(&mine);
    let verbs = verbs.within(Duration::from_millis(300));
    client.try_acquire("b", &options(LONG)).unwrap().expect("nobody holds it").release().unwrap();
    // Only a busy machine may take longer than the limit.
    let overtime = bench.patience() / 4;
    bench.during(Fault::Hang, || {
        let begin = Instant::now();
        let error = verbs.try_acquire(&mine).expect_err("nobody can know");
        assert!(error.kind().is_transient(), "{error}");
        verbs.try_renew(std::slice::from_ref(&lease)).expect_err("nobody can know");
        verbs.try_release(&mine, Certainty::Answered).expect_err("nobody can know");
        // A store that accepts no writes may still be readable.
        verbs.try_fence(&lease).ok();
        assert!(begin.elapsed() < Duration::from_millis(300) * 4 + overtime, "{:?}", begin.elapsed());
        let begin = Instant::now();
        assert!(client.try_acquire("a", &options(Duration::from_secs(3))).is_err());
        assert!(begin.elapsed() < Duration::from_secs(2) + overtime, "{:?}", begin.elapsed());
    });
}

/// How often a store is restarted if that takes longer than a lease lasts without renewals.
const RESTARTS: u32 = 5;

/// A store that restarts with its data knows who holds what.
pub fn holds_survive_a_restart_with_data(bench: &Bench) {
    let in_time = (0..RESTARTS).any(|number| hold_survives_a_restart(bench, &format!("a {number}")));
    assert!(in_time, "each restart took longer than a lease lasts without renewals");
}

/// Whether a hold survived a restart. It may have ended if the restart took longer than the lease lasts.
fn hold_survives_a_restart(bench: &Bench, name: &str) -> bool {
    let (holder, lasts, began) = (bench.verbs(), bench.shortened(LONG), bench.now());
    let lease = holder.take(&claim(name));
    // Where the lease ends with the holder's session, the holder has to stay.
    let holder = Some(holder).filter(|holder| holder.capabilities().entries_end == EntriesEnd::WithSession);
    bench.during(Fault::RestartWithData, || {});
    let verbs = bench.verbs();
    let answer = bench.insist(|| verbs.try_acquire(&claim(name)));
    let fenced = verbs.fence(&lease);
    let renewing = holder.as_ref().unwrap_or(&verbs);
    let renewed = bench.insist(|| renewing.try_renew(std::slice::from_ref(&lease)));
    let is_late = bench.now().since(began) > lasts;
    let is_renewed = matches!(renewed[..], [Renewed::Renewed { .. }]);
    let survived = matches!(answer, Answer::Busy { .. }) && fenced == Fenced::Acknowledged && is_renewed;
    assert!(survived || is_late, "{answer:?}, {fenced:?}, {renewed:?}");
    survived
}
