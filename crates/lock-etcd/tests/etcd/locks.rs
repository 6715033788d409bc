//! One holder at a time, in the order of arrival.

use std::time::Duration;

use lock_core::{Certainty, Claim, ErrorKind, Fenced, Mode, Released, Width};
use test_support::bounds::wait_for;

use crate::support::{Client, claim, lasting, reading, server, waiting};

#[test]
fn a_lock_has_one_holder_and_rising_tokens() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let first = claim("one");
    let lease = one.take(&first);
    assert_eq!(one.take(&first).tokens, lease.tokens, "asking again changes nothing");
    two.is_busy(&claim("one"));
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert!(one.renew(&lease).unwrap() > Some(Duration::from_secs(50)));
    one.releases(&first);
    assert_eq!(one.release(&first, Certainty::Answered), Released::NotHeld);
    assert_eq!((one.renew(&lease).unwrap(), one.fence(&lease)), (None, Fenced::NotHeld));
    let later = two.take(&claim("one"));
    assert!(later.tokens.low() > lease.tokens.high());
    assert_eq!(one.fence(&lease), Fenced::Higher(later.tokens.low()));
}

#[test]
fn waiters_are_granted_in_their_order_by_the_release() {
    let server = server();
    let clients = [(); 3].map(|()| Client::new(&server.url()));
    let [first, second, third] = [(); 3].map(|()| waiting("queue"));
    clients[0].take(&first);
    clients[1].queue(&second, 1);
    clients[2].queue(&third, 2);
    clients[1].queue(&second, 1);
    clients[0].releases(&first);
    let lease = clients[1].wait_for_grant(&second);
    assert!(!clients[2].is_granted(third.owner));
    assert!(clients[1].renew(&lease).unwrap() > Some(Duration::from_secs(50)), "no longer for the length of a place");
    clients[1].releases(&second);
    clients[2].wait_for_grant(&third);
    clients[2].releases(&third);
}

#[test]
fn a_waiter_that_leaves_lets_the_next_one_pass() {
    let server = server();
    let clients = [(); 3].map(|()| Client::new(&server.url()));
    let [first, second, third] = [(); 3].map(|()| waiting("left"));
    clients[0].take(&first);
    clients[1].queue(&second, 1);
    clients[2].queue(&third, 2);
    assert_eq!(clients[1].release(&second, Certainty::Answered), Released::Left);
    clients[0].releases(&first);
    clients[2].wait_for_grant(&third);
}

#[test]
fn readers_hold_together_and_wait_for_a_writer_before_them() {
    let server = server();
    let clients = [(); 4].map(|()| Client::new(&server.url()));
    let [one, two, late] = [(); 3].map(|()| reading(waiting("shared")));
    let writer = waiting("shared");
    clients[0].take(&one);
    clients[1].take(&two);
    clients[2].queue(&writer, 1);
    clients[3].queue(&late, 2);
    clients[0].releases(&one);
    clients[1].releases(&two);
    clients[2].wait_for_grant(&writer);
    clients[2].releases(&writer);
    clients[3].wait_for_grant(&late);
}

#[test]
fn a_lease_that_nobody_renews_ends_and_wakes_the_waiter() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (short, next) = (lasting(claim("short"), Duration::from_secs(1)), waiting("short"));
    let lease = one.take(&short);
    two.queue(&next, 1);
    two.wait_for_grant(&next);
    assert_eq!(one.renew(&lease).unwrap(), None);
}

#[test]
fn a_claim_that_was_given_up_is_refused() {
    let server = server();
    let client = Client::new(&server.url());
    let given_up = claim("late");
    client.take(&given_up);
    assert_eq!(client.release(&given_up, Certainty::Unknown), Released::Released);
    assert_eq!(client.acquire(&given_up).unwrap_err().kind(), ErrorKind::Protocol);
    client.take(&claim("late"));
}

#[test]
fn a_key_that_is_deleted_by_hand_ends_its_lease() {
    let server = server();
    let client = Client::new(&server.url());
    let lease = client.take(&claim("by hand"));
    server.run(&["del", "--prefix", "leasehold/by hand/"]);
    wait_for("the end of the lease", || client.renew(&lease).unwrap().is_none());
    assert_eq!(client.fence(&lease), Fenced::NotHeld);
}

#[test]
fn permits_have_slots_of_their_own() {
    let server = server();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let permits = |count| {
        let width = Width::for_waiters(usize::try_from(count).unwrap());
        Claim { width, ..claim("permits").in_mode(Mode::permits(count, 4).unwrap()) }
    };
    let three = permits(3);
    assert_eq!(one.take(&permits(1)).slots.get(), [0]);
    assert_eq!(two.take(&three).slots.get(), [1, 2, 3]);
    one.is_busy(&permits(1));
    two.releases(&three);
    assert_eq!(one.take(&permits(1)).slots.get(), [1]);
}
