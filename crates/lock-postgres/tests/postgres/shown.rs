//! What operators see of leases that have expired.

use std::thread;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query};
use lock_core::{FencingToken, Holder};

use crate::support::{
    BRIEF, Client, Place, SOON, claim, end, is_queued, lasting, low, meanwhile, operator, take, waiting,
};

fn show(client: &Client, name: &str) -> Option<Entry> {
    client.holder(&name.parse().unwrap(), SOON).unwrap()
}

fn names(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn an_expired_lease_holds_its_lock_for_as_long_as_a_transaction_is_fenced_by_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let [_, held, _] = ["a", "stock", "z"].map(|name| take(&client, &lasting(BRIEF, claim(name))));
    take(&client, &claim("b"));
    user.begin("stock", low(&held)).unwrap();
    thread::sleep(BRIEF + Duration::from_millis(100));
    is_queued(client.acquire(&waiting("stock"), SOON), 1);
    let shown = show(&client, "stock").unwrap();
    assert_eq!((shown.leases, shown.remaining, shown.waiters), (1, Some(Duration::ZERO), 1), "{shown:?}");
    let is_it = |token: FencingToken| token.get() == low(&held);
    assert!(matches!(shown.holder, Holder::Leasehold { tokens, .. } if is_it(tokens.low())), "{shown:?}");
    assert_eq!((show(&client, "a"), show(&client, "z")), (None, None));
    let first = client.list(&Query::all().limit(1), SOON).unwrap();
    assert_eq!(names(&first), ["b"]);
    let second = client.list(&Query::all().limit(1).after(first.next.unwrap()), SOON).unwrap();
    assert_eq!(names(&second), ["stock"]);
    user.run("COMMIT").unwrap();
    assert_eq!(show(&client, "stock"), None);
    assert_eq!(names(&client.list(&Query::all(), SOON).unwrap()), ["b"]);
}

/// Each locks the row of the lease for a moment.
#[test]
fn several_that_look_at_once_do_not_take_each_other_for_a_fence() {
    let place = Place::new();
    take(&place.client(), &lasting(BRIEF, claim("stock")));
    thread::sleep(BRIEF + Duration::from_millis(100));
    let look = |client: Client| meanwhile(move || (0..100).filter(|_| show(&client, "stock").is_some()).count());
    let looks = [(); 4].map(|()| look(place.client()));
    assert_eq!(looks.map(end), [0; 4]);
}

/// As while a commit that ends the lease waits for a standby.
#[test]
fn a_lease_that_somebody_works_on_for_long_is_passed_over() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    take(&client, &lasting(BRIEF, claim("stock")));
    take(&client, &claim("b"));
    thread::sleep(BRIEF + Duration::from_millis(100));
    user.run("BEGIN; SELECT FROM hold WHERE name = 'stock' FOR NO KEY UPDATE").unwrap();
    assert_eq!(show(&client, "stock"), None);
    assert_eq!(names(&client.list(&Query::all(), SOON).unwrap()), ["b"]);
}

#[test]
fn an_operator_is_told_how_a_fenced_transaction_ends() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    user.begin("stock", low(&held)).unwrap();
    let error = client.revoke(&held.name, held.tokens.low(), &operator(), crate::support::SHORT).unwrap_err();
    assert!(error.remedy().unwrap().contains("pg_terminate_backend"), "{error:?}");
}
