//! Unusual entries of the queue: written by hand, with a strange time, of dead clients.

use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{Answer, Claim, EventSink, Queueing, StoreEvent, Terms, Ttl};
use test_support::RedisServer;

use crate::queue::{queue, release};
use crate::support::{Client, SOON, both, claim, eventually, granted, owner, take, without_time};

/// The inbox that the test subscribes to.
const HERE: &str = "leasehold:inbox:00000000000000000000000000000001";
/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest that a place lasts.
const PLACE_MAX: Duration = Duration::from_secs(10);

/// The owner of a waiter that is entered by hand.
const STRANGER: u8 = 7;

fn stranger() -> String {
    owner(STRANGER).to_wire().to_string()
}

/// The server's time, and then so much, in milliseconds.
fn over_in(time: Duration) -> u128 {
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + time).as_millis()
}

/// Puts an entry at the end of a queue by hand.
fn enter(server: &RedisServer, name: &str, over: u128, rest: &str) {
    let (list, hash) = (format!("leasehold:{{{name}}}:q"), format!("leasehold:{{{name}}}:w"));
    server.command::<()>(&["RPUSH", &list, &stranger()]);
    server.command::<()>(&["HSET", &hash, &stranger(), &format!("{over} 30000 1 0 {rest}")]);
}

fn stored(server: &RedisServer, name: &str) -> Option<String> {
    server.command(&["GET", name])
}

fn wanted(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim(name) }
}

#[test]
fn a_waiter_that_shares_is_served_after_an_exclusive_hold_and_told() {
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut inbox = listening.as_pubsub();
    inbox.subscribe(HERE).unwrap();
    for (facade, client) in both(&server.url()) {
        for (fields, limit, slots) in
            [("x5", 5, "0"), ("n1 x2147483647", 2_147_483_647, "-"), ("x1 n1", 1, "0"), ("x3 z9", 3, "0")]
        {
            let name = format!("{facade}:{limit}");
            let (holder, _) = take(&client, &name);
            enter(&server, &name, over_in(PLACE_MAX / 2), &format!("{HERE} {fields} 4711@there shared"));
            release(&client, &holder);
            inbox.set_read_timeout(Some(PATIENCE)).unwrap();
            let told: String = inbox.get_message().unwrap().get_payload().unwrap();
            assert!(told.starts_with(&format!("shared {} ", stranger())), "{told}");
            assert!(told.ends_with(&format!(" 30000 10000 {limit} {slots} 0 {name}")), "{told}");
            assert_eq!(stored(&server, &name), Some(format!("lh2:s:{limit}:")), "{name}");
        }
    }
}

#[test]
fn the_limit_of_an_exclusive_waiter_may_be_written_down() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        for (number, fields) in ["", "x0 ", "n9 x0 ", "x0 n9 z1 "].iter().enumerate() {
            let name = format!("{facade}:{number}");
            let (holder, _) = take(&client, &name);
            enter(&server, &name, over_in(PLACE_MAX / 2), &format!("- {fields}4711@there x5 is no field here"));
            release(&client, &holder);
            let value = stored(&server, &name).unwrap();
            assert!(value.starts_with(&format!("lh1:{}:", stranger())), "{value}");
            assert!(without_time(&value).ends_with(":4711@there x5 is no field here"), "{value}");
        }
    }
}

/// A dead waiter of another kind is skipped like any other.
#[test]
fn a_dead_waiter_for_permits_blocks_nobody() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let nobody = format!("leasehold:inbox:{}", "f".repeat(32));
        for (number, (over, inbox)) in [(1, "-"), (over_in(PLACE_MAX / 2), nobody.as_str())].into_iter().enumerate() {
            let name = format!("{facade}:{number}");
            let (holder, _) = take(&client, &name);
            enter(&server, &name, over, &format!("{inbox} x5 4711@there shared"));
            let ours = queue(&client, &name);
            release(&client, &holder);
            assert!(stored(&server, &name).unwrap().contains(&ours.owner.to_wire().to_string()), "{name}");
        }
    }
}

/// The clock was set back: a place without an inbox still expires.
#[test]
fn a_place_that_ends_later_than_possible_counts_as_expired() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        enter(&server, facade, over_in(Duration::from_secs(3600)), "- n1 4711@here dead");
        let ours = queue(&client, facade);
        let again = client.acquire(&ours, SOON).unwrap();
        assert!(matches!(again, Answer::Queued { position: 1, .. }), "{facade}: {again:?}");
        enter(&server, "other", over_in(Duration::from_secs(3600)), "- n1 4711@here dead");
        release(&client, &holder);
        granted(client.acquire(&ours, SOON));
        // If no waiter of this version waits, the lock is not handed to the dead one either.
        let (holder, _) = take(&client, "other");
        release(&client, &holder);
        assert_eq!(stored(&server, "other"), None, "{facade}");
        release(&client, &ours);
    }
}

/// A waiter with an inbox is served even if the clock stepped: it is notified, and loses nothing.
#[test]
fn a_waiter_with_notifications_survives_a_step_of_the_clock() {
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut inbox = listening.as_pubsub();
    inbox.subscribe(HERE).unwrap();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        enter(&server, facade, over_in(Duration::from_secs(3600)), &format!("{HERE} n1 4711@here alive"));
        release(&client, &holder);
        assert!(stored(&server, facade).unwrap().contains(&stranger()), "{facade}");
        inbox.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(inbox.get_message().unwrap().get_payload::<String>().unwrap().starts_with("granted "));
    }
}

/// A waiter with a short place does not shorten the places of the others.
#[test]
fn the_queue_lasts_as_long_as_its_longest_place() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        take(&client, facade);
        queue(&client, facade);
        let brief = Claim { terms: Terms::exclusive(Ttl::MIN), ..wanted(facade) };
        assert!(matches!(client.acquire(&brief, SOON), Ok(Answer::Queued { position: 2, .. })), "{facade}");
        for part in ["q", "w", "n"] {
            let left: i64 = server.command(&["PTTL", &format!("leasehold:{{{facade}}}:{part}")]);
            assert!(left > i64::try_from(10 * Ttl::MIN.as_millis()).unwrap(), "{facade}: {part} ends in {left} ms");
        }
    }
}

/// The holder died, and so did the first in line: the next claim hands the lock to the second, which is notified.
#[test]
fn the_next_in_line_is_notified_when_a_dead_first_one_is_skipped() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (told, grants) = mpsc::channel();
        client.listen(EventSink::new(move |event| {
            if let StoreEvent::Granted { lease, .. } = event {
                told.send(lease.owner).ok();
            }
        }));
        let dying = Claim { terms: Terms::exclusive(Ttl::new(Duration::from_secs(2)).unwrap()), ..claim(facade) };
        granted(client.acquire(&dying, SOON));
        let nobody = format!("leasehold:inbox:{}", "f".repeat(32));
        enter(&server, facade, over_in(PLACE_MAX), &format!("{nobody} n1 4711@here dead"));
        let second = queue(&client, facade);
        eventually("the holder's lease ends", || stored(&server, facade).is_none());
        let third = wanted(facade);
        assert!(matches!(client.acquire(&third, SOON), Ok(Answer::Queued { position: 1, .. })), "{facade}");
        assert_eq!(grants.recv_timeout(PATIENCE), Ok(second.owner), "{facade}");
        granted(client.acquire(&second, SOON));
    }
}

/// A place whose entry was kept and whose turn in the list was lost, by an eviction, is taken again.
#[test]
fn a_waiter_whose_list_was_evicted_queues_again() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        let [first, second] = [(); 2].map(|()| queue(&client, facade));
        for lost in [&["q"][..], &["q", "n"]] {
            lost.iter().for_each(|part| server.command(&["DEL", &format!("leasehold:{{{facade}}}:{part}")]));
            let newcomer: Client = both(&server.url())[1].1.clone();
            let newcomer = queue(&newcomer, facade);
            for claim in [&first, &second] {
                assert!(matches!(client.acquire(claim, SOON), Ok(Answer::Queued { .. })), "{facade}");
            }
            let list = format!("leasehold:{{{facade}}}:q");
            let listed: Vec<String> = server.command(&["LRANGE", &list, "0", "-1"]);
            for claim in [&newcomer, &first, &second] {
                let owner = claim.owner.to_wire().to_string();
                assert_eq!(listed.iter().filter(|listed| **listed == owner).count(), 1, "{facade}");
            }
        }
        release(&client, &holder);
    }
}
