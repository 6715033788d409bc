//! Thousands of waiters, many of whom may have died: no script works through all of them at once, because other clients wait
//! for it meanwhile. What a script did is counted, not timed.

use lock_core::inspect::{Query, Revoked};
use lock_core::{Answer, BlockingBackend, Certainty, Claim, Mode, Note, Queueing, ReleaseRequest, Released, Terms};
use test_support::RedisServer;

use crate::crowd::Crowd;
use crate::queue::{listed as listed_places, release, waiting};
use crate::queue_cost::{Ran, ran};
use crate::support::{Client, SOON, both, claim, granted, is_busy, operator, release_of, take};

/// How many waiters and leases a script looks at: the last lock that it begins with may be as long as it lists.
const LOOKED_AT_MAX: u64 = 200;

/// Places of waiters that do not expire soon, each with an inbox of its own unless one is given.
const FILL: &str = "
local now, beside = redis.call('TIME')[1] * 1000, 'leasehold:{' .. KEYS[1] .. '}:'
for i = 1, tonumber(ARGV[1]) do
  local owner = string.format('%032x', i)
  local inbox = ARGV[2] ~= '' and ARGV[2] or 'leasehold:inbox:' .. owner
  local entry = string.format('%.0f 30000 1 0 %s n%d x%s 1@here gone', now + 600000, inbox, i, ARGV[3])
  redis.call('RPUSH', beside .. 'q', owner)
  redis.call('HSET', beside .. 'w', owner, entry)
end
redis.call('SET', beside .. 'n', ARGV[1])
for _, key in ipairs({'q', 'w', 'n'}) do redis.call('PEXPIRE', beside .. key, 600000) end
";

/// An inbox with a subscriber.
const HEARD: &str = "leasehold:inbox:heard";

fn fill(server: &RedisServer, name: &str, count: usize, inbox: &str, limit: &str) {
    server.command::<()>(&["EVAL", FILL, "1", name, &count.to_string(), inbox, limit]);
}

fn times(ran: &Ran, command: &str) -> u64 {
    ran.get(command).copied().unwrap_or_default()
}

/// The names and their waiters, in order.
fn listed(inspect: &dyn BlockingBackend) -> Vec<(String, u32, usize)> {
    let page = inspect.list(&Query::matching("*").limit(1000), SOON).unwrap();
    assert_eq!(page.next, None);
    let entries = page.entries.into_iter();
    let mut listed: Vec<_> = entries.map(|entry| (entry.name.to_string(), entry.waiters, entry.queue.len())).collect();
    listed.sort();
    listed
}

/// The waiters who are checked are those listed, and none of them lives; the others count as living.
#[test]
fn a_listing_looks_at_few_waiters_of_a_long_queue() {
    const COUNT: usize = 10_000;
    let server = RedisServer::start();
    server.command::<()>(&["SET", "long", &format!("lh1:{}:1:1:1@here held", "ab".repeat(16))]);
    fill(&server, "long", COUNT, "", "0");
    for (facade, inspect) in both(&server.url()) {
        let ran = ran(&server, || assert_eq!(listed(&*inspect), [("long".to_owned(), 9_900, 0)], "{facade}"));
        assert_eq!((times(&ran, "hvals"), times(&ran, "pubsub|numsub")), (0, 100), "{facade}: {ran:?}");
    }
}

#[test]
fn a_listing_of_many_queues_takes_several_scripts() {
    const NAMES: usize = 40;
    const COUNT: usize = 60;
    let server = RedisServer::start();
    let mut listener = server.connection();
    let mut listener = listener.as_pubsub();
    listener.subscribe(HEARD).unwrap();
    let names: Vec<String> = (0..NAMES).map(|number| format!("job{number:02}")).collect();
    for name in &names {
        server.command::<()>(&["SET", name, &format!("lh1:{}:1:1:1@here held", "ab".repeat(16))]);
        fill(&server, name, COUNT, HEARD, "0");
    }
    let expected: Vec<_> = names.iter().map(|name| (name.clone(), 60, 60)).collect();
    for (facade, inspect) in both(&server.url()) {
        let ran = ran(&server, || assert_eq!(listed(&*inspect), expected, "{facade}"));
        let per_script = (NAMES * COUNT) as u64 / times(&ran, "evalsha");
        assert!(per_script <= LOOKED_AT_MAX, "{facade}: {per_script} waiters in a script: {ran:?}");
    }
}

/// Places that were left come before those that are waited in, and count for nothing.
#[test]
fn a_long_queue_says_what_its_first_waiters_ask_for() {
    let server = RedisServer::start();
    let mut listener = server.connection();
    let mut listener = listener.as_pubsub();
    listener.subscribe(HEARD).unwrap();
    server.command::<()>(&["SET", "long", &format!("lh1:{}:1:1:1@here held", "ab".repeat(16))]);
    fill(&server, "long", 500, HEARD, "2147483647");
    let left: Vec<String> = (1..=150).map(|number| format!("{number:032x}")).collect();
    let words: Vec<&str> = ["HDEL", "leasehold:{long}:w"].into_iter().chain(left.iter().map(String::as_str)).collect();
    server.command::<()>(&words);
    for (facade, inspect) in both(&server.url()) {
        let entry = inspect.holder(&"long".parse().unwrap(), SOON).unwrap().unwrap();
        let modes: Vec<_> = entry.queue.iter().map(|waiter| waiter.mode).collect();
        assert_eq!((entry.waiters, modes), (350, vec![Mode::Shared; 100]), "{facade}");
        // An earlier version has written no time.
        let first = entry.queue[0].clone();
        assert_eq!((first.note, first.age), (Some(Note::from_wire("1@here gone")), None), "{facade}");
    }
}

/// How many places one script passes over, with the batch that it has begun.
const PASSED_MAX: u64 = 200;
/// How many waiters have died.
const DEAD: usize = 1_500;
/// A lock that several want exclusively, and one that is read.
const LIMITS: [&str; 2] = ["0", "2147483647"];

fn name(limit: &str, facade: &str) -> String {
    format!("{facade}{limit}")
}

/// How many places a script passed over on average.
#[track_caller]
fn each_passed_few(ran: &Ran) {
    let scripts = times(ran, "evalsha");
    let per_script = DEAD as u64 / scripts;
    assert!(per_script <= PASSED_MAX, "{per_script} places were passed over in each of {scripts} scripts: {ran:?}");
}

fn for_limit(claim: Claim, limit: &str) -> Claim {
    let mode = if limit == "0" { Mode::Exclusive } else { Mode::Shared };
    Claim { terms: Terms { mode, ..claim.terms }, ..claim }
}

/// The waiters of a fleet that crashed are passed over in several steps, and the one behind them has the lock.
#[test]
fn a_release_passes_over_the_dead_in_steps() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        for limit in LIMITS {
            let name = name(limit, facade);
            let (holder, lease) = take(&client, &name);
            fill(&server, &name, DEAD, "", limit);
            let waiter = Claim { queueing: Queueing::Wanted, ..for_limit(claim(&name), limit) };
            assert!(matches!(client.acquire(&waiter, SOON), Ok(Answer::Queued { .. })), "{name}");
            each_passed_few(&ran(&server, || release(&client, &holder)));
            assert_eq!((waiting(&server, &name), listed_places(&server, &name)), (0, 0), "{name}");
            let next = granted(client.acquire(&waiter, SOON));
            assert!(next.tokens.low() > lease.tokens.high(), "{name}");
            release(&client, &waiter);
        }
    }
}

/// So are they by a reader's end, by a claim, where a lock is kept, and by an operator.
#[test]
fn whatever_serves_waiters_passes_over_the_dead_in_steps() {
    type Step = fn(&Client, &RedisServer, &str);
    let steps: [(&str, Step); 5] = [
        ("reader", |client, server, name| {
            let reader = for_limit(claim(name), "2147483647");
            granted(client.acquire(&reader, SOON));
            fill(server, name, DEAD, "", "2147483647");
            each_passed_few(&ran(server, || release(client, &reader)));
            granted(client.acquire(&claim(name), SOON));
        }),
        ("claim", |client, server, name| {
            fill(server, name, DEAD, "", "0");
            each_passed_few(&ran(server, || _ = take(client, name)));
        }),
        ("shared claim", |client, server, name| {
            fill(server, name, DEAD, "", "2147483647");
            let reader = for_limit(claim(name), "2147483647");
            each_passed_few(&ran(server, || _ = granted(client.acquire(&reader, SOON))));
        }),
        ("kept", |client, server, name| {
            let (holder, _) = take(client, name);
            fill(server, name, DEAD, "", "0");
            let kept = ReleaseRequest { keep: Some(SOON), ..release_of(&holder, Certainty::Answered) };
            each_passed_few(&ran(server, || assert_eq!(client.release(&kept, SOON).unwrap(), Released::Released)));
            is_busy(client.acquire(&claim(name), SOON));
        }),
        ("revoked", |client, server, name| {
            let (_, lease) = take(client, name);
            fill(server, name, DEAD, "", "0");
            let [(_, inspect), _] = both(&server.url());
            let (name, token) = (name.parse().unwrap(), lease.tokens.high());
            each_passed_few(&ran(server, || {
                assert_eq!(inspect.revoke(&name, token, &operator(), SOON).unwrap(), Revoked::Revoked);
            }));
        }),
    ];
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        for (what, step) in &steps {
            step(&client, &server, &name(what, facade));
        }
    }
}

/// Clients whose requests go together: each is answered for itself.
#[test]
fn releases_that_go_together_pass_over_the_dead_in_steps() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let claims: Vec<Claim> = (0..10).map(|number| claim(&number.to_string())).collect();
    crowd.take(&claims);
    for claim in &claims {
        fill(&server, claim.name.as_str(), 300, "", "0");
    }
    let ran = ran(&server, || {
        let said = crowd.release(&claims);
        assert!(said.iter().all(|said| said.as_ref().is_ok_and(|said| *said == Released::Released)), "{said:?}");
    });
    let scripts = times(&ran, "evalsha");
    assert!(3000 / scripts <= PASSED_MAX, "{scripts} scripts: {ran:?}");
    assert!(claims.iter().all(|claim| waiting(&server, claim.name.as_str()) == 0));
}

/// Waiters behind the dead are notified to ask where some before them were served.
#[test]
fn a_reader_behind_the_dead_is_told() {
    let server = RedisServer::start();
    let [(_, client), _] = both(&server.url());
    let (holder, _) = take(&client, "book");
    let first = Claim { queueing: Queueing::Wanted, ..for_limit(claim("book"), "2147483647") };
    assert!(matches!(client.acquire(&first, SOON), Ok(Answer::Queued { .. })));
    fill(&server, "book", DEAD, "", "2147483647");
    let mut listener = server.connection();
    let mut listener = listener.as_pubsub();
    listener.subscribe(HEARD).unwrap();
    listener.set_read_timeout(Some(SOON)).unwrap();
    let late = "f".repeat(32);
    let entry = format!("9999999999999 30000 1 0 {HEARD} n{} x2147483647 1@here late", DEAD + 9);
    server.command::<()>(&["RPUSH", "leasehold:{book}:q", &late]);
    server.command::<()>(&["HSET", "leasehold:{book}:w", &late, &entry]);
    release(&client, &holder);
    let told: String = listener.get_message().expect("the late one is told").get_payload().unwrap();
    assert_eq!(told, "recheck book");
    granted(client.acquire(&first, SOON));
}
