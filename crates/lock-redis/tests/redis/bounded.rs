//! Hundreds of readers, permits, waiters and inboxes: each script looks at a bounded number of them, because other clients wait for it
//! meanwhile. What a script did is counted, not timed.

use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::latch::{self, Count, Watching};
use lock_core::limit::{Act, Request};
use lock_core::{
    Answer, BackendError, BlockingBackend, Claim, ErrorKind, FencingToken, Lease, Limit, Mode, Queueing, Ttl, Width,
};
use lock_redis::RedisConfig;
use lock_redis::blocking::Redis;
use test_support::RedisServer;

use crate::queue::{listed, queue, release, waiting};
use crate::queue_cost::{Ran, ran};
use crate::support::{Client, SOON, both, claim, granted, operator, take};

/// An inbox with a subscriber.
const HEARD: &str = "leasehold:inbox:heard";
/// How many waiters a new limit reaches at once, and how many inboxes are notified together.
const TOGETHER: u64 = 100;

fn times(ran: &Ran, command: &str) -> u64 {
    ran.get(command).copied().unwrap_or_default()
}

fn connect(server: &RedisServer) -> Redis {
    Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap()
}

/// Subscribes until the end of a test.
fn subscribed(connection: &mut redis::Connection) -> redis::PubSub<'_> {
    let mut messages = connection.as_pubsub();
    messages.subscribe(HEARD).unwrap();
    messages.set_read_timeout(Some(SOON)).unwrap();
    messages
}

fn heard(messages: &mut redis::PubSub<'_>) -> String {
    messages.get_message().expect("a message arrives").get_payload().unwrap()
}

/// Leases that share a name: so many, each with so many permits, or readers.
const SHARE: &str = "
local now, beside, slot = redis.call('TIME')[1] * 1000, 'leasehold:{' .. KEYS[1] .. '}:', 0
local limit, leases, width = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 1, leases do
  local owner, slots = string.format('%032x', i), {}
  for _ = 1, width do
    redis.call('ZADD', beside .. 'h', now + 600000 + i, string.format('%s:%010d', owner, slot))
    slots[#slots + 1], slot = slot, slot + 1
  end
  if width == 0 then redis.call('ZADD', beside .. 'h', now + 600000 + i, owner) end
  local high = i * 100 + math.max(width, 1) - 1
  redis.call('HSET', beside .. 's', owner, string.format('%d:%d:%s:1@here held', i * 100, high, table.concat(slots, ',')))
end
for _, key in ipairs({beside .. 'h', beside .. 's'}) do redis.call('PEXPIRE', key, 600000) end
redis.call('SET', KEYS[1], 'lh2:s:' .. limit .. ':', 'PX', 600000)
";

/// All leases are counted. Those listed are the leases of the permits that end last.
#[test]
fn a_listing_looks_at_few_of_many_leases() {
    let server = RedisServer::start();
    let readers = ("2147483647", "1500", "0", 1500, 100);
    let permits = ("2000", "1500", "1", 1500, 100);
    let wide = ("2000", "30", "64", 30, 8);
    for (limit, leases, width, count, shown) in [readers, permits, wide] {
        let name = format!("{limit} {width}");
        server.command::<()>(&["EVAL", SHARE, "1", &name, limit, leases, width]);
        for (facade, client) in both(&server.url()) {
            let entry = client.holder(&name.parse().unwrap(), SOON).unwrap().unwrap();
            assert_eq!((entry.leases, entry.holders.len()), (count, shown), "{facade}: {name}");
        }
    }
}

/// The lease that has a token is searched among all of them.
#[test]
fn a_revocation_searches_many_leases_in_steps() {
    const LEASES: u64 = 5000;
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        server.command::<()>(&["EVAL", SHARE, "1", facade, "2147483647", &LEASES.to_string(), "0"]);
        let (name, mut stored) = (facade.parse().unwrap(), LEASES);
        let revoke = |token| client.revoke(&name, FencingToken::new(token).unwrap(), &operator(), SOON).unwrap();
        for (tokens, revoked) in [(1, Revoked::NotHeld), (250_000, Revoked::Revoked), (500_000, Revoked::Revoked)] {
            let ran = ran(&server, || assert_eq!(revoke(tokens), revoked, "{facade}: {tokens}"));
            assert_eq!(times(&ran, "hgetall") + times(&ran, "hvals"), 0, "{facade}: {ran:?}");
            let steps = times(&ran, "hscan");
            assert!(steps <= LEASES / 200 + 1, "{facade}: {ran:?}");
            assert!(revoked == Revoked::Revoked || steps >= LEASES / 400, "{facade}: {ran:?}");
            stored -= u64::from(revoked == Revoked::Revoked);
        }
        let left = server.command::<u64>(&["HLEN", &format!("leasehold:{{{facade}}}:s")]);
        assert_eq!(left, stored, "{facade}");
    }
}

fn permits(name: &str, count: u32, limit: u32) -> Claim {
    let mode = Mode::permits(count, limit).unwrap();
    Claim { width: Width::for_waiters(count as usize), queueing: Queueing::Unwanted, ..claim(name).in_mode(mode) }
}

/// Waiters for so many permits of five, of whom the last one has this number.
const WAIT: &str = "
local now, beside = redis.call('TIME')[1] * 1000, 'leasehold:{' .. KEYS[1] .. '}:'
for i = 1, tonumber(ARGV[1]) do
  local owner, number = string.format('%032x', ARGV[4] + i), redis.call('INCR', beside .. 'n')
  local entry = string.format('%.0f 30000 %d 0 %s n%d x5 1@here fleet', now + 600000, ARGV[2], ARGV[3], number)
  redis.call('RPUSH', beside .. 'q', owner)
  redis.call('HSET', beside .. 'w', owner, entry)
end
for _, key in ipairs({'q', 'w', 'n'}) do redis.call('PEXPIRE', beside .. key, 600000) end
";

fn wait(server: &RedisServer, name: &str, count: u32, width: u32, first: u32) {
    let [count, width, first] = [count, width, first].map(|number| number.to_string());
    server.command::<()>(&["EVAL", WAIT, "1", name, &count, &width, HEARD, &first]);
}

fn lower(server: &RedisServer, name: &str, new: u32) {
    let limit = |number| Limit::new(number).unwrap();
    let request = Request { name: name.parse().unwrap(), known: limit(5), act: Act::Set(limit(new)) };
    connect(server).limit(&request, SOON).unwrap();
}

fn queues(client: &Client, claim: &Claim) {
    let answer = client.acquire(claim, SOON);
    assert!(matches!(answer, Ok(Answer::Queued { .. })), "{answer:?}");
}

#[test]
fn a_new_limit_reaches_the_first_waiters_at_once() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut messages = subscribed(&mut connection);
    for (facade, client) in both(&server.url()) {
        granted(client.acquire(&permits(facade, 2, 5), SOON));
        granted(client.acquire(&permits(facade, 3, 5), SOON));
        wait(&server, facade, 1, 4, 0);
        wait(&server, facade, 999, 1, 1);
        let ran = ran(&server, || lower(&server, facade, 2));
        assert_eq!(heard(&mut messages), format!("recheck {facade}"), "who wants too many is told");
        assert_eq!(waiting(&server, facade), 999, "{facade}");
        let written: u64 = ["hset", "publish", "hget", "hdel"].iter().map(|command| times(&ran, command)).sum();
        assert!((TOGETHER - 10..=TOGETHER + 10).contains(&written), "{facade}: {ran:?}");
        assert_eq!(times(&ran, "hgetall") + times(&ran, "hvals"), 0, "{facade}: {ran:?}");
    }
}

/// They are served under the limit in force although their entries name another one.
#[test]
fn waiters_that_a_new_limit_did_not_reach_come_under_it_in_their_turn() {
    const BEFORE: u32 = 150;
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut messages = subscribed(&mut connection);
    for (facade, client) in both(&server.url()) {
        let [first, second] = [(); 2].map(|()| permits(facade, 2, 5));
        for holder in [&first, &second] {
            granted(client.acquire(holder, SOON));
        }
        wait(&server, facade, BEFORE, 2, 0);
        wait(&server, facade, 1, 4, 1000);
        let waiters = [(); 3].map(|()| Claim { queueing: Queueing::Wanted, ..permits(facade, 1, 5) });
        let impatient = Claim { queueing: Queueing::Wanted, ..permits(facade, 3, 5) };
        waiters.iter().chain([&impatient]).for_each(|waiter| queues(&client, waiter));
        lower(&server, facade, 2);
        assert_eq!(waiting(&server, facade), BEFORE as usize + 5, "{facade}");

        let refusal = client.acquire(&impatient, SOON).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::OtherKind, "{facade}: {refusal}");
        assert_eq!(waiting(&server, facade), BEFORE as usize + 4, "{facade}: it has lost its place");

        let fleet: Vec<String> = (1..=BEFORE).map(|number| format!("{number:032x}")).collect();
        let entries = format!("leasehold:{{{facade}}}:w");
        server
            .command::<()>(&["HDEL", &entries].into_iter().chain(fleet.iter().map(String::as_str)).collect::<Vec<_>>());
        for holder in [&first, &second] {
            release(&client, holder);
        }
        assert_eq!(heard(&mut messages), format!("recheck {facade}"), "who wants too many is told");
        let lease = |claim: &Claim| granted(client.acquire(claim, SOON));
        let served: Vec<Lease> = waiters[..2].iter().map(lease).collect();
        assert!(served.iter().all(|lease| lease.terms.mode.limit() == Limit::new(2).ok()), "{facade}: {served:?}");
        assert_eq!(server.command::<String>(&["GET", facade]), "lh2:s:2:", "{facade}");
        assert!(
            matches!(client.acquire(&waiters[2], SOON), Ok(Answer::Queued { .. })),
            "{facade}: there are two permits"
        );
    }
}

/// A claim for another number of permits is compared with the limit in force, whatever the first waiter names.
#[test]
fn a_claim_under_the_new_limit_queues_behind_waiters_under_the_old_one() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let _messages = subscribed(&mut connection);
    for (facade, client) in both(&server.url()) {
        server.command::<()>(&["SET", facade, "c2VjcmV0", "PX", "600000"]);
        wait(&server, facade, 1, 1, 0);
        server.command::<()>(&["SET", &format!("leasehold:{{{facade}}}:l"), "2 5"]);
        queues(&client, &Claim { queueing: Queueing::Wanted, ..permits(facade, 1, 2) });
    }
}

fn latch(client: &Redis, name: &str, act: latch::Act) -> Result<latch::Seen, BackendError> {
    client.latch(&latch::Request { name: name.parse().unwrap(), act }, SOON)
}

/// Inboxes of so many clients that wait for a latch.
const WATCH: &str = "
local now, beside = redis.call('TIME')[1] * 1000, 'leasehold:{' .. KEYS[1] .. '}:latch:'
for i = 1, tonumber(ARGV[1]) do
  local inbox = i == 1 and ARGV[2] or 'leasehold:inbox:' .. i
  redis.call('HSET', beside .. 'w', inbox, inbox)
  redis.call('ZADD', beside .. 't', now + tonumber(ARGV[3]) + i, inbox)
end
";

/// The last arrival, and a reset of a latch that is not complete.
#[test]
fn the_clients_that_wait_for_a_latch_are_notified_in_steps() {
    const INBOXES: u64 = 950;
    let server = RedisServer::start();
    let client = connect(&server);
    let mut connection = server.connection();
    let mut messages = subscribed(&mut connection);
    let ttl: Ttl = "1m".parse().unwrap();
    let arrive = |id: &str| latch::Act::Arrive { id: id.parse().unwrap(), call: 1, ttl };
    for name in ["complete", "reset"] {
        let generation = latch(&client, name, latch::Act::Make { ttl }).unwrap().state.unwrap().generation;
        let count = Count::new(2).unwrap();
        latch(&client, name, latch::Act::Expect { count, generation, ttl }).unwrap();
        latch(&client, name, arrive("one")).unwrap();
        server.command::<()>(&["EVAL", WATCH, "1", name, &INBOXES.to_string(), HEARD, "5000"]);
        let last = if name == "complete" { arrive("two") } else { latch::Act::Reset { generation, ttl } };
        let mut seen = None;
        let ran = ran(&server, || seen = latch(&client, name, last).unwrap().state);
        assert_eq!(seen.unwrap().arrived, if name == "complete" { 2 } else { 0 }, "{name}");
        assert_eq!(times(&ran, "publish"), INBOXES, "{name}: {ran:?}");
        let scripts = times(&ran, "evalsha");
        assert!(INBOXES.div_ceil(scripts) <= TOGETHER, "{name}: {ran:?}");
        assert_eq!(heard(&mut messages), format!("latch {name}"));
        let left = ["w", "t"].map(|part| format!("leasehold:{{{name}}}:latch:{part}"));
        assert_eq!(server.command::<i64>(&["EXISTS", &left[0], &left[1]]), 0, "{name}");
    }
}

/// A client that begins to wait after a reset is not notified of it.
#[test]
fn a_wait_that_began_after_a_reset_is_left_alone() {
    let server = RedisServer::start();
    let client = connect(&server);
    let ttl: Ttl = "1m".parse().unwrap();
    let first = latch(&client, "late", latch::Act::Make { ttl }).unwrap().state.unwrap().generation;
    let reset = || latch::Act::Reset { generation: first, ttl };
    latch(&client, "late", reset()).unwrap();
    server.command::<()>(&["EVAL", WATCH, "1", "late", "1", HEARD, "12000"]);
    let ran = ran(&server, || _ = latch(&client, "late", reset()).unwrap());
    assert_eq!(times(&ran, "publish"), 0, "{ran:?}");
    latch(&client, "late", latch::Act::Look { watching: Watching::Unwanted }).unwrap();
    assert_eq!(server.command::<i64>(&["HLEN", "leasehold:{late}:latch:w"]), 1);
}

/// A long list of waiters that have left is shortened by new waiters, a few places each.
#[test]
fn a_list_is_shortened_in_steps() {
    const LEFT: usize = 2_000;
    const JOINS: usize = 1_000;
    /// How many commands four claims that join run together, at most.
    const COMMANDS_MAX: u64 = 100;
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        take(&client, facade);
        queue(&client, facade);
        let fill = "for i = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], string.format('%032x', i)) end";
        server.command::<()>(&["EVAL", fill, "1", &format!("leasehold:{{{facade}}}:q"), &LEFT.to_string()]);
        let last = queue(&client, facade);
        let before = listed(&server, facade);
        let four = ran(&server, || (0..4).for_each(|_| drop(queue(&client, facade))));
        let removed = before + 4 - listed(&server, facade);
        assert!((1..=16).contains(&removed), "{facade}: {removed} were removed");
        assert!(four.values().sum::<u64>() <= COMMANDS_MAX, "{facade}: {four:?}");
        assert_eq!((times(&four, "lrem"), times(&four, "rpush")), (1, 4), "{facade}: {four:?}");
        let mut joins = (0..JOINS).map(|_| drop(queue(&client, facade)));
        let is_short = |()| listed(&server, facade) <= 2 * waiting(&server, facade) + 16;
        assert!(joins.any(is_short), "{facade}: {} are listed", listed(&server, facade));
        let position = client.acquire(&last, Duration::from_secs(1)).unwrap();
        assert!(matches!(position, Answer::Queued { .. }), "{facade}: {position:?}");
    }
}
