#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may")]

use std::sync::Arc;

use lock_blocking::Client;
use lock_core::{BackendError, Busy, Effect, ErrorKind, Operation};
use lock_host::ManualClock;
use lock_memory::MemoryStore;

use super::*;

fn client() -> Client {
    Client::new(Arc::new(MemoryStore::default().blocking())).unwrap()
}

fn plan(members: impl IntoIterator<Item = Member>) -> Result<SetPlan, Invalid> {
    SetPlan::new(members.into_iter().collect())
}

/// A lock of a client at this place.
fn at(client: &Client, name: &str, location: Option<(&str, &str)>) -> Member {
    let location = location.map(|(store, key)| Location { store: store.to_owned(), key: key.to_owned() });
    Member { location, ..client.mutex(name).member().unwrap() }
}

fn told(plan: Result<SetPlan, Invalid>) -> String {
    plan.unwrap_err().to_string()
}

#[test]
fn locks_are_ordered_by_where_they_are_kept() {
    let client = client();
    let places = [("b", "y", "b"), ("c", "x", "p:c"), ("a", "y", "a"), ("d", "x", "d")];
    let plan = plan(places.map(|(name, store, key)| at(&client, name, Some((store, key))))).unwrap();
    assert_eq!(plan.order(), [3, 1, 2, 0]);
}

#[test]
fn names_order_the_locks_of_a_client_that_does_not_know_where_they_are() {
    let (one, other) = (client(), client());
    assert_eq!(plan([at(&one, "b", None), at(&one, "a", None)]).unwrap().order(), [1, 0]);
    let text = told(plan([at(&one, "b", Some(("x", "b"))), at(&other, "a", None)]));
    assert!(text.contains("\"a\"") && text.contains("does not know which server it uses"), "{text}");
    assert!(plan([at(&one, "b", Some(("x", "b"))), at(&other, "a", Some(("y", "a")))]).is_ok());
}

#[test]
fn a_lock_is_listed_once_under_whatever_name() {
    let (one, other) = (client(), client());
    let twice = told(plan([at(&one, "a", None), at(&one, "b", None), at(&one, "a", None)]));
    assert_eq!(twice, "lock of a set \"a\" is not valid: it is listed twice; list each lock once");
    let located = Some(("x", "a"));
    assert_eq!(told(plan([at(&one, "a", located), at(&other, "a", located)])), twice);
    let alias = told(plan([at(&one, "p:a", Some(("x", "p:a"))), at(&other, "a", Some(("x", "p:a")))]));
    assert!(alias.contains("\"p:a\" is not valid: it is the same lock as \"a\""), "{alias}");
    assert!(plan([at(&one, "a", located), at(&other, "a", Some(("y", "a")))]).is_ok(), "another store");
    assert!(told(plan([])).contains("empty"));
}

#[test]
fn the_shortest_wait_is_that_of_the_set_and_counts_from_its_beginning() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let client = Client::builder(Arc::new(store.blocking())).clock(Arc::new(clock.clone())).build().unwrap();
    let secs = Duration::from_secs;
    let mutexes = [client.mutex("a").wait(secs(9)), client.mutex("b"), client.mutex("c").wait(secs(5))];
    let plan = plan(mutexes.map(|mutex| mutex.member().unwrap())).unwrap();
    clock.advance(secs(3));
    assert_eq!(plan.left(), Some(secs(2)));
    clock.advance(secs(3));
    assert_eq!(plan.left(), Some(Duration::ZERO));
    let name: LockName = "c".parse().unwrap();
    let error = AcquireError::TimedOut { name: name.clone(), waited: Duration::ZERO, holder: None };
    let AcquireAllError::At { name: named, error } = plan.failed(2, error) else { panic!("another error") };
    assert_eq!((named, error), (name.clone(), AcquireError::TimedOut { name, waited: secs(6), holder: None }));
}

#[test]
fn unless_all_are_granted_the_granted_ones_are_released() {
    let client = client();
    let plan = plan(["a", "b", "c"].map(|name| at(&client, name, None))).unwrap();
    let busy = || Err(Busy { name: "b".parse().unwrap(), holder: None }.into());
    let error = || Err(AcquireError::Closed.into());
    let guard = |name| Ok(client.mutex(name).acquire().unwrap());
    let is_free = |name| client.mutex(name).try_acquire().unwrap().is_some();

    let landed = plan.landed([guard("a"), busy(), guard("c")]);
    assert!(matches!(landed, Err(TryAcquireError::Busy(_))) && is_free("a") && is_free("c"));
    let landed = plan.landed([busy(), error(), guard("c")]);
    assert!(matches!(landed, Err(TryAcquireError::Failed(_))) && is_free("c"), "an error says more than busy");
    let landed = plan.landed([guard("a"), guard("b"), guard("c")]).unwrap();
    assert!(landed.is_held() && !is_free("a"));
}

#[test]
fn only_what_may_pass_is_waited_for() {
    let client = client();
    let plan = plan([at(&client, "a", None)]).unwrap();
    let failed = |kind| {
        let error = BackendError::new("test", Operation::Acquire, kind, Effect::None, "no");
        passes(plan.failed(0, error.into()).into())
    };
    assert!(failed(ErrorKind::Unreachable).is_ok());
    assert!(failed(ErrorKind::Denied).is_err());
    assert!(passes(plan.failed(0, AcquireError::Closed).into()).is_err());
    assert!(passes(Busy { name: "a".parse().unwrap(), holder: None }.into()).is_ok());
}
