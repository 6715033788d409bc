//! What a queue costs the server: each step takes the same number of commands, however many wait. Times would say less here.

use std::collections::BTreeMap;

use lock_core::{Answer, Certainty, Claim, Queueing, Released};
use test_support::RedisServer;

use crate::queue::{listed, nothing_is_left, queue, release, waiting};
use crate::support::{Client, SOON, both, claim, granted, release_of, take};

/// How often each command ran.
pub(crate) type Ran = BTreeMap<String, u64>;

/// Commands whose cost grows with what they are given to search.
const SEARCHES: [&str; 7] = ["lpos", "lrem", "linsert", "hgetall", "hvals", "hkeys", "scan"];

/// How many owners without an entry may be in the list before any is removed, and after the last one was.
const SLACK: usize = 16;

/// A claim that joins sweeps when the list reaches a multiple of this length.
const SWEPT_EVERY: usize = 4;

/// What the scripts of a step ran.
pub(crate) fn ran(server: &RedisServer, step: impl FnOnce()) -> Ran {
    server.command::<()>(&["CONFIG", "RESETSTAT"]);
    step();
    let info: String = server.command(&["INFO", "commandstats"]);
    let counted = |line: &str| {
        let (name, rest) = line.trim().strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = rest.split(',').next()?.parse().ok()?;
        // What the test itself sends.
        let ours = ["config", "client", "hello", "info"].iter().any(|own| name.starts_with(own));
        (!ours).then(|| (name.to_owned(), calls))
    };
    info.lines().filter_map(counted).collect()
}

#[track_caller]
fn queues_at(client: &Client, claim: &Claim, expected: u32) {
    let answer = client.acquire(claim, SOON);
    let Ok(Answer::Queued { position, .. }) = answer else { panic!("not queued: {answer:?}") };
    assert_eq!(position, expected);
}

#[track_caller]
fn leave(client: &Client, claim: &Claim) {
    assert_eq!(client.release(&release_of(claim, Certainty::Answered), SOON).unwrap(), Released::Left);
}

/// The cost with this many waiters: asking again from the middle, joining, leaving from the middle, and a hand-over.
fn steps(server: &RedisServer, client: &Client, name: &str, count: usize) -> [Ran; 4] {
    let (holder, _) = take(client, name);
    let waiters: Vec<Claim> = (0..count).map(|_| queue(client, name)).collect();
    let newcomers = [(); SWEPT_EVERY].map(|()| Claim { queueing: Queueing::Wanted, ..claim(name) });
    let middle = count / 2;
    let join = || {
        for (position, newcomer) in (u32::try_from(count).unwrap() + 1..).zip(&newcomers) {
            queues_at(client, newcomer, position);
        }
    };
    [
        ran(server, || queues_at(client, &waiters[middle], u32::try_from(middle + 1).unwrap())),
        ran(server, join),
        ran(server, || leave(client, &waiters[middle])),
        ran(server, || release(client, &holder)),
    ]
}

#[test]
fn each_step_of_a_long_queue_costs_as_much_as_of_a_short_one() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (short, long) = (steps(&server, &client, "short", 20), steps(&server, &client, "long", 400));
        assert_eq!(short, long, "{facade}");
        let searched = long.iter().flat_map(BTreeMap::keys).find(|name| SEARCHES.contains(&name.as_str()));
        assert_eq!(searched, None, "{facade}");
        server.command::<()>(&["FLUSHALL"]);
    }
}

/// Hundreds give up behind one that does not: each costs the same, and new waiters make the queue short again.
#[test]
fn many_waiters_that_leave_at_once_cost_no_more_each() {
    const COUNT: usize = 400;
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        let first = queue(&client, facade);
        let impatient: Vec<Claim> = (0..COUNT).map(|_| queue(&client, facade)).collect();
        let last = queue(&client, facade);
        let one = ran(&server, || leave(&client, &impatient[0]));
        let all = ran(&server, || impatient[1..].iter().for_each(|waiter| leave(&client, waiter)));
        let each: Ran = all.into_iter().map(|(name, calls)| (name, calls / (COUNT as u64 - 1))).collect();
        assert_eq!(one, each, "{facade}");
        assert_eq!(waiting(&server, facade), 2, "{facade}");
        let newcomers: Vec<Claim> = (0..COUNT / 2).map(|_| queue(&client, facade)).collect();
        let (listed, waiting) = (listed(&server, facade), waiting(&server, facade));
        assert!(listed <= 2 * waiting + SLACK, "{facade}: {listed} are still listed, and {waiting} wait");
        let mut holder = holder;
        for next in [first, last].into_iter().chain(newcomers) {
            release(&client, &holder);
            granted(client.acquire(&next, SOON));
            holder = next;
        }
        release(&client, &holder);
        nothing_is_left(&server);
    }
}

/// When all waiters have left, the queue itself is gone, not only its members.
#[test]
fn the_queue_is_deleted_with_its_last_waiter() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, _) = take(&client, facade);
        let waiters: Vec<Claim> = (0..20).map(|_| queue(&client, facade)).collect();
        waiters.iter().for_each(|waiter| leave(&client, waiter));
        assert_eq!((waiting(&server, facade), listed(&server, facade)), (0, 0), "{facade}");
        release(&client, &holder);
    }
}

/// A waiter that joins and leaves again and again is not listed once for each time.
#[test]
fn a_waiter_that_joins_and_leaves_repeatedly_is_listed_once() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        take(&client, facade);
        queue(&client, facade);
        let restless = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        for _ in 0..100 {
            assert!(matches!(client.acquire(&restless, SOON), Ok(Answer::Queued { .. })), "{facade}");
            leave(&client, &restless);
        }
        assert!(listed(&server, facade) <= 20, "{facade}: {} are listed", listed(&server, facade));
    }
}

/// Waiters that died in the middle of the queue are removed by those that join.
#[test]
fn the_dead_are_swept_out_of_the_middle() {
    const LIVE: usize = 40;
    // A multiple of the number of windows: the length decides which one is swept.
    const JOINS_MAX: usize = 1000;
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        take(&client, facade);
        let waiters = format!("leasehold:{{{facade}}}:w");
        (0..LIVE).for_each(|_| drop(queue(&client, facade)));
        let dead: Vec<Claim> = (0..LIVE).map(|_| queue(&client, facade)).collect();
        (0..LIVE).for_each(|_| drop(queue(&client, facade)));
        let owners: Vec<String> = dead.iter().map(|dead| dead.owner.to_wire().to_string()).collect();
        for owner in &owners {
            server.command::<()>(&["HSET", &waiters, owner, "1 30000 1 0 - n1 1@here dead"]);
        }
        let ask: Vec<&str> = ["HMGET", &waiters].into_iter().chain(owners.iter().map(String::as_str)).collect();
        let left = || server.command::<Vec<Option<String>>>(&ask).into_iter().flatten().count();
        assert_eq!(left(), LIVE, "{facade}");
        let mut joins = (0..JOINS_MAX).map(|_| queue(&client, facade));
        assert!(joins.any(|_| left() == 0), "{facade}: {} of the dead are left", left());
    }
}
