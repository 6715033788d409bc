//! The view for operators, and prefixes.

use lock_core::inspect::{Page, Query, Revoked};
use lock_core::{BlockingBackend, FencingToken, Holder, LockName};
use lock_sqlite::blocking::Sqlite;

use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, operator, position, secs};

fn list(client: &Sqlite, query: &Query) -> Page {
    client.list(query, WITHIN).unwrap()
}

fn names(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn the_holder_is_shown_with_its_queue() {
    let rig = Rig::new();
    let client = rig.client();
    let holder = |name: &LockName| client.holder(name, WITHIN).unwrap();
    let mine = claim("a");
    assert_eq!(holder(&mine.name), None);
    let lease = granted(client.ask(&mine));
    position(client.ask(&claim("a")));
    let entry = holder(&mine.name).unwrap();
    assert_eq!((entry.waiters, entry.remaining), (1, Some(secs(30))));
    assert_eq!(entry.holder, Holder::Leasehold { tokens: lease.tokens, note: mine.note.clone() });
    rig.clock.advance(secs(30));
    assert_eq!(holder(&mine.name), None);
}

#[test]
fn waiters_that_died_are_not_counted() {
    let rig = Rig::new();
    let client = rig.client();
    let mine = claim("a");
    granted(client.ask(&mine));
    for _ in 0..3 {
        position(client.ask(&claim("a")));
    }
    let waiters = || {
        let holder = client.holder(&mine.name, WITHIN).unwrap().unwrap();
        (holder.waiters, list(&client, &Query::all()).entries[0].waiters)
    };
    assert_eq!(waiters(), (3, 3));
    rig.clock.advance(secs(6));
    position(client.ask(&claim("a")));
    assert_eq!(waiters(), (4, 4));
    rig.clock.advance(secs(4));
    assert_eq!((waiters(), rig.rows("queue")), ((1, 1), 4));
}

#[test]
fn listings_go_on_page_by_page() {
    let rig = Rig::new();
    let client = rig.client();
    for name in ["a:1", "a:2", "a:3", "b:1", "c:1"] {
        granted(client.ask(&claim(name)));
    }
    let first = list(&client, &Query::matching("*:1").limit(2));
    assert_eq!(names(&first), ["a:1", "b:1"]);
    let second = list(&client, &Query::matching("*:1").limit(2).after(first.next.clone().unwrap()));
    assert_eq!((names(&second), &second.next), (vec!["c:1"], &None));
    assert_eq!(list(&client, &Query::matching("?:2")).entries.len(), 1);
    assert_eq!(names(&list(&client, &Query::matching("nothing*"))), Vec::<&str>::new());
    rig.clock.advance(secs(30));
    assert_eq!(names(&list(&client, &Query::all())), Vec::<&str>::new());
}

#[test]
fn a_page_looks_at_a_bounded_number_of_locks() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&claim("zebra")));
    rig.raw()
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
             INSERT INTO locks SELECT 'lock:' || i, owner, low, high, note, boot, expires_ns, written_ns FROM n, locks",
        )
        .unwrap();
    let first = list(&client, &Query::matching("z*"));
    let second = list(&client, &Query::matching("z*").after(first.next.clone().unwrap()));
    let third = list(&client, &Query::matching("z*").after(second.next.clone().unwrap()));
    assert_eq!([&first, &second, &third].map(|page| names(page).len()), [0, 0, 1]);
    assert_eq!(third.next, None);
}

#[test]
fn only_a_token_of_a_lease_revokes_it() {
    let rig = Rig::new();
    let client = rig.client();
    let mine = claim("a");
    let lease = granted(client.ask(&mine));
    let waiter = claim("a");
    position(client.ask(&waiter));
    let other = FencingToken::new(lease.tokens.high().get() + 1).unwrap();
    assert_eq!(client.revoke(&mine.name, other, &operator(), WITHIN).unwrap(), Revoked::NotHeld);
    assert_eq!(client.revoke(&mine.name, lease.tokens.high(), &operator(), WITHIN).unwrap(), Revoked::Revoked);
    assert_eq!(client.revoke(&mine.name, lease.tokens.high(), &operator(), WITHIN).unwrap(), Revoked::NotHeld);
    granted(client.ask(&waiter));
}

#[test]
fn prefixes_keep_applications_apart_and_are_taken_off_again() {
    let rig = Rig::new();
    let (bare, shop, shop2) = (rig.client(), rig.with_prefix("shop"), rig.with_prefix("shop2"));
    granted(shop.ask(&claim("a")));
    granted(shop2.ask(&claim("a")));
    granted(bare.ask(&claim("a")));
    busy(shop.ask(&impatient("a")));
    busy(bare.ask(&impatient("shop:a")));
    assert_eq!(names(&list(&shop, &Query::all())), ["a"]);
    assert_eq!(names(&list(&bare, &Query::all())), ["a", "shop2:a", "shop:a"]);
}
