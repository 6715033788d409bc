//! A lease that was handed over lasts for a place until its first renewal, which comes soon.

use std::thread;
use std::time::Duration;

use redis::{Connection, FromRedisValue};
use test_support::RedisServer;

use crate::facades::{FACADES, Facade, Held};
use crate::support::eventually;

const TTL: Duration = Duration::from_secs(30);
/// A lease that was not renewed yet lasts for less than this.
const A_PLACE: Duration = Duration::from_secs(10);

/// Hands a lock over to a client that waits for it. Asks the server over this connection only.
fn hand_over<'a>(server: &mut Connection, holds: &Facade, waits: &'a Facade, name: &str) -> Held<'a> {
    let held = holds.acquire(name, TTL);
    thread::scope(|scope| {
        let next = scope.spawn(|| waits.acquire(name, TTL));
        let waiters = format!("leasehold:{{{name}}}:w");
        eventually("the next one waits", || ask::<u8>(server, &["HLEN", &waiters]) == 1);
        held.release();
        next.join().unwrap()
    })
}

fn ask<T: FromRedisValue>(server: &mut Connection, words: &[&str]) -> T {
    let mut command = redis::Cmd::new();
    words.iter().for_each(|word| _ = command.arg(word));
    command.query(server).unwrap()
}

#[test]
fn an_outage_right_after_a_hand_over_costs_no_lock() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let pair = |connect: &fn(&str) -> Facade| [(); 2].map(|()| connect(&server.url()));
    let pairs: Vec<_> = FACADES.iter().map(|(facade, connect)| (*facade, pair(connect))).collect();
    let mut held = Vec::new();
    for (facade, [holds, waits]) in &pairs {
        held.push((*facade, hand_over(&mut connection, holds, waits, facade)));
    }
    thread::sleep(Duration::from_millis(500));
    server.stop();
    thread::sleep(Duration::from_secs(5));
    let left: Vec<_> = held.iter().map(|(facade, held)| (facade, held.remaining())).collect();
    server.resume();
    assert!(left.iter().all(|(_, left)| *left > A_PLACE), "a lease of {TTL:?} is near its end: {left:?}");
    for (facade, held) in held {
        assert!(held.is_stored(), "{facade}: {:?}", held.loss());
        held.release();
    }
}

#[test]
fn the_first_renewal_waits_for_no_new_connection() {
    for (facade, connect) in &FACADES[..2] {
        let server = RedisServer::start();
        let mut connection = server.connection();
        let [one, other] = [(); 2].map(|()| connect(&server.url()));
        // What the two need for waiting and for releasing is open after this.
        for [holds, waits] in [[&one, &other], [&other, &one]] {
            hand_over(&mut connection, holds, waits, "job").release();
        }
        let connections: String = ask(&mut connection, &["CLIENT", "LIST"]);
        let most = connections.lines().count().to_string();
        ask::<()>(&mut connection, &["CONFIG", "SET", "maxclients", &most]);
        let held = hand_over(&mut connection, &one, &other, "job");
        eventually(&format!("{facade}: the first renewal"), || held.remaining() > A_PLACE);
        held.release();
    }
}
