//! Leases that are not exclusive beside open fences, and what is left of fences.

use std::thread;
use std::time::Duration;

use lock_core::{Claim, Mode};

use crate::support::{BRIEF, Place, SHORT, SOON, claim, code, is_busy, lasting, low, permits, releases, take};

fn reading(name: &str) -> Claim {
    claim(name).in_mode(Mode::Shared)
}

fn wait_for_the_end_of_a_brief_lease() {
    thread::sleep(BRIEF + Duration::from_millis(100));
}

#[test]
fn a_reader_whose_transaction_is_fenced_keeps_writers_out_and_no_readers() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    user.begin("catalog", low(&take(&client, &lasting(BRIEF, reading("catalog"))))).unwrap();
    wait_for_the_end_of_a_brief_lease();
    is_busy(client.acquire(&claim("catalog"), SOON));
    let other = reading("catalog");
    take(&client, &other);
    releases(&client, &other);
    is_busy(client.acquire(&claim("catalog"), SOON));
    user.run("COMMIT").unwrap();
    take(&client, &claim("catalog"));
}

#[test]
fn permits_that_have_expired_under_an_open_fence_are_granted_to_nobody() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let fenced = take(&client, &lasting(BRIEF, permits("gpu", 2, 3)));
    assert_eq!(fenced.slots.get(), [0, 1]);
    user.begin("gpu", low(&fenced)).unwrap();
    wait_for_the_end_of_a_brief_lease();
    is_busy(client.acquire(&permits("gpu", 2, 3), SOON));
    let other = permits("gpu", 1, 3);
    assert_eq!(take(&client, &other).slots.get(), [2]);
    is_busy(client.acquire(&permits("gpu", 1, 3), SOON));
    user.run("COMMIT").unwrap();
    assert_eq!(take(&client, &permits("gpu", 2, 3)).slots.get(), [0, 1]);
}

/// Both leases are of one lock, and neither waits for the other.
#[test]
fn holders_of_different_permits_work_in_fenced_transactions_at_once() {
    let place = Place::new();
    let (client, [one, two]) = (place.client(), [place.session(), place.session()]);
    let [first, second] = [permits("gpu", 1, 2), permits("gpu", 1, 2)];
    one.begin("gpu", low(&take(&client, &first))).unwrap();
    two.begin("gpu", low(&take(&client, &second))).unwrap();
    one.run("COMMIT").unwrap();
    releases(&client, &first);
    two.run("COMMIT").unwrap();
    releases(&client, &second);
}

/// A lock that is in use every day is never swept.
#[test]
fn what_fences_leave_behind_does_not_grow_with_the_leases_of_a_lock() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let fenced = |claim: &Claim| {
        user.begin("stock", low(&take(&client, claim))).unwrap();
        user.run("COMMIT").unwrap();
    };
    for _ in 0..10 {
        let held = claim("stock");
        fenced(&held);
        releases(&client, &held);
        fenced(&claim("stock"));
        user.run("UPDATE hold SET until = clock() - 1 WHERE name = 'stock'").unwrap();
    }
    let left = user.value::<i64>("SELECT count(*) FROM turn");
    assert!(left <= 2, "{left} rows are left of 20 leases");
}

/// Tickets are adopted, writers become readers, and permits are given back one by one.
#[test]
fn a_lease_that_replaced_another_one_fences_and_the_other_one_does_so_no_more() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for (i, [from, to]) in [
        [claim("a"), claim("a")],
        [claim("a"), reading("a")],
        [reading("a"), reading("a")],
        [reading("a"), claim("a")],
        [permits("a", 2, 3), permits("a", 2, 3)],
        [permits("a", 2, 3), permits("a", 1, 3)],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("lock {i}");
        let from = Claim { name: name.parse().unwrap(), ..from };
        let to = Claim { name: name.parse().unwrap(), replaces: Some(from.owner), ..to };
        let before = take(&client, &from);
        user.begin(&name, low(&before)).unwrap();
        let error = client.acquire(&to, SHORT).unwrap_err();
        assert!(error.to_string().contains("transaction"), "{i}: {error}");
        user.run("COMMIT").unwrap();
        let after = take(&client, &to);
        user.begin(&name, low(&after)).unwrap_or_else(|error| panic!("{i}: {error}"));
        user.run("COMMIT").unwrap();
        if low(&before) != low(&after) {
            assert_eq!(code(user.begin(&name, low(&before))), "LH001", "{i}");
        }
        releases(&client, &to);
    }
}
