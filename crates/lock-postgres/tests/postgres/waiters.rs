//! What becomes of a client's waiters: those whose claims were refused, and those of a runtime that has ended.

use lock_core::{AsyncBackend, BackendError, Claim, Effect, ErrorKind, StoreEvent};
use lock_postgres::nonblocking;
use test_support::bounds::{wait_for, within};
use tokio::runtime::Runtime;

use crate::support::{Client, Place, SOON, claim, events_of, is_queued, is_told, release_of, releases, take, waiting};

/// How often a claim is refused.
const REFUSALS: usize = 10;

/// A place in which a claim waits for others only briefly, and is refused then.
fn impatient() -> Place {
    Place::twin(&[("set_config('lock_timeout', within, true)", "set_config('lock_timeout', '50', true)")])
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(answer: Result<T, BackendError>) {
    let error = answer.expect_err("it is refused");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
}

/// A waiter of a client that listens.
struct Waiter {
    place: Place,
    holding: Client,
    held: Claim,
    waits: Client,
    queued: Claim,
    /// Counts the connections over which the client listens.
    listens: String,
}

impl Waiter {
    fn new() -> Self {
        let (place, held, queued) = (impatient(), claim("report"), waiting("report"));
        let (holding, waits) = (place.client(), place.client());
        take(&holding, &held);
        is_queued(waits.acquire(&queued, SOON), 1);
        let channel: String = place.session().value("SELECT channel FROM place");
        let listens = format!("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN {channel}'");
        let waiter = Self { place, holding, held, waits, queued, listens };
        waiter.has_listeners("a waiter", 1);
        waiter
    }

    #[track_caller]
    fn has_listeners(&self, what: &str, count: i64) {
        let session = self.place.session();
        wait_for(&format!("{what} has {count} connections that listen"), || {
            session.value::<i64>(&self.listens) == count
        });
    }

    /// Runs this while another transaction has the lock's row.
    fn while_the_row_is_locked(&self, run: impl FnOnce()) {
        let session = self.place.session();
        session.run("BEGIN; SELECT FROM lock WHERE name = 'report' FOR NO KEY UPDATE").unwrap();
        run();
        session.run("COMMIT").unwrap();
    }
}

/// Claims that were refused are forgotten: otherwise the client would wait for their notifications.
#[test]
fn a_client_whose_claims_were_refused_listens_no_more_once_nobody_waits() {
    let waiter = Waiter::new();
    waiter.while_the_row_is_locked(|| {
        (0..REFUSALS).for_each(|_| is_refused(waiter.waits.acquire(&waiting("report"), SOON)));
    });
    waiter.waits.release(&release_of(&waiter.queued), SOON).unwrap();
    waiter.has_listeners("a client without waiters", 0);
}

/// It still has the place that an earlier claim took.
#[test]
fn a_waiter_whose_later_claims_were_refused_is_told_of_its_turn_and_no_other_is() {
    let waiter = Waiter::new();
    let told = events_of(&*waiter.waits);
    waiter.while_the_row_is_locked(|| {
        for _ in 0..REFUSALS {
            is_refused(waiter.waits.acquire(&waiter.queued, SOON));
            is_refused(waiter.waits.acquire(&waiting("report"), SOON));
        }
    });
    releases(&waiter.holding, &waiter.held);
    is_told(&told, &waiter.queued);
    releases(&waiter.waits, &waiter.queued);
    let next = claim("report");
    take(&waiter.waits, &next);
    releases(&waiter.waits, &next);
    let is_grant = |event: &StoreEvent| matches!(event, StoreEvent::Granted { .. });
    assert_eq!(told.try_iter().filter(is_grant).count(), 0, "nobody else has waited");
}

/// The task that attends to waiters belongs to the runtime that the first of them asked in.
#[test]
fn the_waiters_of_a_second_runtime_are_told_of_their_turn_after_the_first_one_has_ended() {
    let place = Place::new();
    let (holding, config) = (place.client(), place.config());
    let [first, second] = [(); 2].map(|()| Runtime::new().unwrap());
    let [earlier, held] = [claim("earlier"), claim("report")];
    take(&holding, &earlier);
    take(&holding, &held);
    let store = wait_for("a connection", || first.block_on(nonblocking::connect(&config)));
    let (told, queued) = (events_of(&store), waiting("report"));
    is_queued(first.block_on(store.acquire(&waiting("earlier"), SOON)), 1);
    within("the end of a runtime", || drop(first));
    is_queued(second.block_on(store.acquire(&queued, SOON)), 1);
    releases(&holding, &held);
    is_told(&told, &queued);
}
