//! Rows that fail at any one call: a request then has changed nothing, and succeeds when it is asked again.

use std::time::Duration;

use lock_core::limit::{Act, Record, Request};
use lock_core::{
    Certainty, Claim, Fairness, FencingToken, Lease, Limit, LockName, Mode, Moment, NameKind, Note, Owner, Queueing,
    ReleaseRequest, Terms, Ttl, Width,
};
use lock_rules::{Changes, Hold, Rows, Standing, Undone};

use crate::notice::{ClientId, Place};
use crate::rows::MemoryRows;
use crate::store::Store;

/// The call that was to fail.
#[derive(Debug, PartialEq)]
struct Failed;

/// The rows of a lock, of which one call fails.
struct Failing<'a, 'b> {
    rows: &'a mut MemoryRows<'b>,
    calls_left: u32,
}

impl<'b> Failing<'_, 'b> {
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut MemoryRows<'b>) -> Result<T, std::convert::Infallible>,
    ) -> Result<T, Failed> {
        self.calls_left = self.calls_left.checked_sub(1).ok_or(Failed)?;
        let Ok(answer) = call(self.rows);
        Ok(answer)
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&mut self, $($argument: $type),*) -> Result<$answer, Failed> {
            self.call(|rows| rows.$method($($argument),*))
        })*
    };
}

impl Rows for Failing<'_, '_> {
    const BACKEND: &'static str = "failing";
    type Client = ClientId;
    type Error = Failed;

    fn now(&self) -> Moment {
        self.rows.now()
    }

    forward! {
        standing() -> Option<Standing>;
        hold(owner: Owner) -> Option<Hold>;
        hold_with(token: FencingToken) -> Option<Hold>;
        last_hold(except: Option<Owner>) -> Option<Hold>;
        first_ends(permits: u32) -> Vec<(Moment, u32)>;
        free_slots(count: u32) -> Vec<u32>;
        place(owner: Owner) -> Option<Place>;
        next_place(number: u64) -> Option<Place>;
        places_before(number: u64, most: u32) -> u32;
        last_number() -> u64;
        queued_above(permits: u32) -> Vec<Place>;
        is_given_up(owner: Owner) -> bool;
        limit() -> Option<Record>;
        last_token() -> u64;
        revoked_by(highest: FencingToken) -> Option<Note>;
        write(changes: Changes<ClientId>) -> ();
    }
}

/// A request, and whether it did not fail.
type Ask = Box<dyn Fn(&mut Failing<'_, '_>) -> bool>;

fn name() -> LockName {
    "a".parse().unwrap()
}

fn owner(byte: u8) -> Owner {
    Owner::from_random([byte; 16])
}

fn claim(byte: u8, mode: Mode) -> Claim {
    Claim {
        name: name(),
        owner: owner(byte),
        terms: Terms { mode, ttl: Ttl::DEFAULT },
        width: Width::ONE,
        floor: None,
        note: Note::from_wire("1@here"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

fn is_done<T>(answer: Result<T, Undone<Failed>>) -> bool {
    !matches!(answer, Err(Undone::Failed(Failed)))
}

fn acquire(claim: Claim) -> Ask {
    Box::new(move |rows| is_done(lock_rules::acquire(rows, ClientId::new(1), &claim)))
}

fn release(byte: u8, mode: Mode, keep: Option<Duration>) -> Ask {
    let request = ReleaseRequest { keep, ..claim(byte, mode).release(Certainty::Unknown) };
    Box::new(move |rows| is_done(lock_rules::release(rows, &request)))
}

fn revoke_first() -> Ask {
    Box::new(|rows| {
        let Ok(Some(held)) = rows.last_hold(None) else { return false };
        lock_rules::revoke(rows, &name(), held.tokens.low(), &Note::from_wire("1@ops")).is_ok()
    })
}

fn renew_and_fence(byte: u8) -> Ask {
    Box::new(move |rows| {
        let Ok(held) = rows.hold(owner(byte)) else { return false };
        let Some(Hold { owner, tokens, mode, slots, .. }) = held else { return true };
        let lease = Lease { name: name(), owner, tokens, terms: Terms { mode, ttl: Ttl::DEFAULT }, slots };
        lock_rules::fence(rows, &lease).is_ok() && lock_rules::renew(rows, &lease).is_ok()
    })
}

fn set_limit(known: u32, limit: u32) -> Ask {
    let [known, limit] = [known, limit].map(|limit| Limit::new(limit).unwrap());
    let request = Request { name: name(), known, act: Act::Set(limit) };
    Box::new(move |rows| is_done(lock_rules::limit(rows, &request)))
}

/// Plays the requests. Each fails first at every one of its calls.
fn play(requests: &[Ask]) {
    let (mut store, now) = (Store::new(), Moment::ORIGIN + Duration::from_secs(1));
    for (number, ask) in requests.iter().enumerate() {
        let mut calls = 0;
        loop {
            let before = format!("{store:?}");
            let done = store.visit(now, &name(), |rows| ask(&mut Failing { rows, calls_left: calls }));
            if done {
                break;
            }
            assert_eq!(format!("{store:?}"), before, "request {number} failed at call {calls}");
            calls += 1;
            assert!(calls < 1000, "request {number} never succeeds");
        }
        assert!(calls > 1, "request {number} asks the rows");
    }
    assert!(!store.take_notices().is_empty(), "waiters were served");
}

#[test]
fn a_request_about_a_lock_that_fails_changes_nothing() {
    let (exclusive, shared) = (Mode::Exclusive, Mode::Shared);
    let upgrade = Claim { replaces: Some(owner(3)), ..claim(5, exclusive) };
    play(&[
        acquire(claim(1, exclusive)),
        acquire(claim(2, exclusive)),
        acquire(claim(3, shared)),
        acquire(claim(4, shared)),
        renew_and_fence(1),
        release(1, exclusive, None),
        revoke_first(),
        renew_and_fence(3),
        release(4, shared, None),
        acquire(upgrade),
        acquire(claim(6, exclusive)),
        release(5, exclusive, Some(Duration::from_secs(5))),
    ]);
}

#[test]
fn a_request_about_a_semaphore_that_fails_changes_nothing() {
    let permits = |count| Mode::permits(count, 4).unwrap();
    play(&[
        acquire(claim(1, permits(3))),
        acquire(claim(2, permits(2))),
        acquire(claim(3, permits(1))),
        acquire(claim(4, permits(4))),
        set_limit(4, 5),
        release(1, permits(3), None),
        set_limit(4, 2),
        revoke_first(),
        release(3, permits(1), None),
    ]);
}
