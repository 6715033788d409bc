//! Beside etcd's own client for Go. `concurrency.Mutex` and this library exclude each other and wait in one queue.

use std::time::Duration;

use lock_core::{Answer, Fenced, Holder};
use test_support::bounds::wait_for;
use test_support::{EtcdServer, Fault, GoLock, GoPeer, Proxy};

use crate::support::{Client, claim, facade, reading, server, waiting};

/// Seconds of a lease that nobody is to lose.
const LONG: u32 = 60;
/// Seconds of one that ends while a test looks on.
const BRIEF: u32 = 2;

fn key(name: &str) -> String {
    format!("leasehold/{name}")
}

fn take(server: &EtcdServer, seconds: u32, lock: GoLock, name: &str) -> GoPeer {
    let peer = GoPeer::acquire(server, seconds, lock, &key(name));
    peer.says("acquired");
    peer
}

/// Begins to acquire, and waits until so many are in the queue.
fn queue(server: &EtcdServer, lock: GoLock, name: &str, at: usize) -> GoPeer {
    let peer = GoPeer::acquire(server, LONG, lock, &key(name));
    wait_for("the peer is in the queue", || entries(server, name).len() == at);
    peer
}

/// The keys of holders and waiters, in their order.
fn entries(server: &EtcdServer, name: &str) -> Vec<String> {
    let sorted = ["get", "--prefix", "--keys-only", "--sort-by", "CREATE", "--order", "ASCEND"];
    let listed = server.run(&[&sorted[..], &[&format!("{}/", key(name))]].concat());
    listed.lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()
}

fn release(peer: &mut GoPeer) {
    peer.tell("release");
    peer.says("released");
}

#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn both_are_served_in_the_order_of_one_queue() {
    let (server, name) = (server(), "go-queue");
    let client = Client::new(&server.url());
    let mut first = take(&server, LONG, GoLock::Mutex, name);
    let answer = client.acquire(&claim(name)).unwrap();
    assert!(matches!(answer, Answer::Busy { holder: Holder::Foreign, .. }), "{answer:?}");
    let (second, fourth) = (waiting(name), waiting(name));
    client.queue(&second, 1);
    let mut third = queue(&server, GoLock::Mutex, name, 3);
    client.queue(&fourth, 3);
    release(&mut first);
    let lease = client.wait_for_grant(&second);
    assert!(third.said().is_none() && !client.is_granted(fourth.owner));
    client.releases(&second);
    third.says("acquired");
    assert!(!client.is_granted(fourth.owner));
    release(&mut third);
    assert!(client.wait_for_grant(&fourth).tokens.low() > lease.tokens.high());
    client.releases(&fourth);
}

#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn a_suspended_holder_in_go_loses_the_lock_to_us_and_its_unlock_says_nothing() {
    let (server, name) = (server(), "go-suspended");
    let client = Client::new(&server.url());
    let mut theirs = take(&server, BRIEF, GoLock::Mutex, name);
    let ours = waiting(name);
    client.queue(&ours, 1);
    theirs.stop();
    let lease = client.wait_for_grant(&ours);
    theirs.resume();
    theirs.says("session ended");
    theirs.tell("owner");
    theirs.says("owner false");
    release(&mut theirs);
    assert_eq!(client.fence(&lease), Fenced::Acknowledged);
}

#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn our_holder_that_is_cut_off_is_told_before_a_waiter_in_go_has_the_lock() {
    let (server, name) = (server(), "go-cut-off");
    let proxy = Proxy::start(server.port());
    let client = facade(&format!("etcd://127.0.0.1:{}", proxy.port()));
    let guard = client.mutex(name).ttl(Duration::from_secs(BRIEF.into())).acquire().unwrap();
    let theirs = queue(&server, GoLock::Mutex, name, 2);
    proxy.set(Fault::Hold);
    wait_for("the loss", || guard.check().is_err());
    assert_eq!(theirs.said(), None);
    theirs.says("acquired");
    proxy.set(Fault::None);
    guard.release().unwrap_err();
}

#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn a_key_that_is_deleted_by_hand_hands_the_lock_over_and_only_ours_says_so() {
    let (server, name) = (server(), "go-deleted");
    let client = Client::new(&server.url());
    let mut theirs = take(&server, LONG, GoLock::Mutex, name);
    let ours = waiting(name);
    client.queue(&ours, 1);
    server.run(&["del", &entries(&server, name)[0]]);
    let lease = client.wait_for_grant(&ours);
    assert_eq!(theirs.said(), None);
    theirs.tell("owner");
    theirs.says("owner false");
    release(&mut theirs);
    let next = queue(&server, GoLock::Mutex, name, 2);
    server.run(&["del", &entries(&server, name)[0]]);
    next.says("acquired");
    assert_eq!(client.renew(&lease).unwrap(), None);
    assert!(matches!(client.fence(&lease), Fenced::Higher(_)));
}

#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn a_writer_in_go_and_we_exclude_each_other() {
    let (server, name) = (server(), "go-writer");
    let client = Client::new(&server.url());
    let (first, third) = (reading(waiting(name)), reading(waiting(name)));
    client.take(&first);
    let mut theirs = queue(&server, GoLock::Write, name, 2);
    client.queue(&third, 2);
    assert_eq!(theirs.said(), None);
    client.releases(&first);
    theirs.says("acquired");
    assert!(!client.is_granted(third.owner));
    release(&mut theirs);
    client.wait_for_grant(&third);
}

/// Readers in Go look only for keys of writers in Go. We take a key of a reader for one that holds alone.
#[test]
#[ignore = "it needs a program with Go's client, which is downloaded; `cargo xtask go` runs it"]
fn a_reader_in_go_does_not_wait_for_us_but_we_wait_for_it() {
    let (server, name) = (server(), "go-reader");
    let client = Client::new(&server.url());
    let first = claim(name);
    client.take(&first);
    let mut theirs = take(&server, LONG, GoLock::Read, name);
    client.releases(&first);
    let ours = reading(waiting(name));
    client.queue(&ours, 1);
    release(&mut theirs);
    client.wait_for_grant(&ours);
}
