//! What the scripts do about a limit that was set, beyond what the reference store shows.

use std::thread;
use std::time::Duration;

use lock_core::limit::{Act, Record, Request};
use lock_core::{Answer, BlockingBackend, Claim, ErrorKind, Lease, Limit, Mode, Queueing, Terms, Ttl, Width};
use lock_redis::RedisConfig;
use lock_redis::blocking::Redis;
use test_support::RedisServer;

use crate::support::{Client, SOON, both, claim};

const BRIEF: Duration = Duration::from_millis(200);

fn set(server: &RedisServer, name: &str, known: u32, new: u32) {
    let client = Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap();
    let limit = |number| Limit::new(number).unwrap();
    let request = Request { name: name.parse().unwrap(), known: limit(known), act: Act::Set(limit(new)) };
    client.limit(&request, SOON).unwrap();
}

fn permits(name: &str, count: u32, limit: u32) -> Claim {
    let mode = Mode::permits(count, limit).unwrap();
    Claim { width: Width::for_waiters(count as usize), queueing: Queueing::Unwanted, ..claim(name).in_mode(mode) }
}

fn lasting(ttl: Duration, claim: Claim) -> Claim {
    Claim { terms: Terms { ttl: Ttl::new(ttl).unwrap(), ..claim.terms }, ..claim }
}

fn take(client: &Client, claim: &Claim) -> Lease {
    match client.acquire(claim, SOON).unwrap() {
        Answer::Granted { lease, .. } => lease,
        other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("{other:?}"),
    }
}

/// A visit drops some leases that have ended, those that ended first. Here these have the highest slots.
#[test]
fn slots_are_below_a_lowered_limit_whatever_has_ended_above_it() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name = &format!("gpu {facade}");
        assert_eq!(take(&client, &permits(name, 1, 500)).slots.get(), [0]);
        for longer in (0..4).rev() {
            take(&client, &lasting(BRIEF + Duration::from_millis(100) * longer, permits(name, 64, 500)));
        }
        set(&server, name, 500, 3);
        thread::sleep(BRIEF + Duration::from_millis(400));
        assert_eq!(take(&client, &permits(name, 2, 3)).slots.get(), [1, 2], "{facade}");
    }
}

/// Such a client does not know the record, and is the first to hold.
#[test]
fn a_holder_of_an_earlier_version_is_counted_under_the_limit_in_force() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name = &format!("gpu {facade}");
        let record = &format!("leasehold:{{{name}}}:l");
        take(&client, &permits(name, 2, 2));
        // As if the record had been there before, and was not seen.
        server.command::<()>(&["SET", record, "4 2"]);
        let lease = take(&client, &permits(name, 2, 4));
        assert_eq!((lease.slots.get(), lease.terms.mode.limit()), (&[2, 3][..], Limit::new(4).ok()));
        assert_eq!(server.command::<String>(&["GET", name]), "lh2:s:4:");
        assert!(server.command::<i64>(&["PTTL", name]) > 0, "it still ends with the last lease");
        assert!(matches!(client.acquire(&permits(name, 1, 2), SOON), Ok(Answer::Busy { .. })), "{facade}");
    }
}

#[test]
fn the_record_ends_by_itself_and_notes_of_waiters_stay_what_they_are() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name = &format!("gpu {facade}");
        take(&client, &permits(name, 2, 2));
        let note = "n3 x2 y";
        let waiter = Claim { queueing: Queueing::Wanted, ..permits(name, 1, 2) };
        let waiter = Claim { note: lock_core::Note::new("h", 1, note).unwrap(), ..waiter };
        assert!(matches!(client.acquire(&waiter, SOON), Ok(Answer::Queued { .. })));
        set(&server, name, 2, 1);
        let (beside, owner) = (|part: &str| format!("leasehold:{{{name}}}:{part}"), waiter.owner.to_wire().to_string());
        let entry: String = server.command(&["HGET", &beside("w"), &owner]);
        assert!(entry.contains(" x1 ") && entry.ends_with(&format!(" {}", waiter.note.to_wire())), "{entry}");
        assert_eq!(server.command::<String>(&["GET", &beside("l")]), "1 2");
        let left = Duration::from_millis(server.command(&["PTTL", &beside("l")]));
        assert!(Record::KEPT_FOR - left < Duration::from_secs(60), "{left:?}");
    }
}

#[test]
fn no_permit_is_available_while_another_library_holds_the_name() {
    let server = RedisServer::start();
    let client = Redis::connect(&RedisConfig::from_url(&server.url()).unwrap()).unwrap();
    server.command::<()>(&["SET", "gpu", "c2VjcmV0", "PX", "60000"]);
    let limit = Limit::new(4).unwrap();
    for act in [Act::Look, Act::Set(limit)] {
        let request = Request { name: "gpu".parse().unwrap(), known: limit, act };
        let usage = client.limit(&request, SOON).unwrap();
        assert_eq!((usage.limit, usage.available()), (limit, 0), "{act:?}");
    }
}

/// A user of locks only, and one who lacks any single right that setting a limit may need.
#[test]
fn a_limit_that_may_not_be_set_is_not_half_set() {
    let server = RedisServer::start();
    let rights = "+pexpireat +unlink +zadd +zcard +zrange +zrem";
    let url = server.url().replace("redis://", "redis://app:pw@");
    for missing in [rights].into_iter().chain(rights.split(' ')) {
        let missing = missing.replace('+', "-");
        let user = ["ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "&*", "+@all"];
        server.command::<()>(&user.into_iter().chain(missing.split(' ')).collect::<Vec<_>>());
        let client = Redis::connect(&RedisConfig::from_url(&url).unwrap()).unwrap();
        let limit = |number| Limit::new(number).unwrap();
        let request = Request { name: "gpu".parse().unwrap(), known: limit(3), act: Act::Set(limit(5)) };
        let error = client.limit(&request, SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{missing}: {error}");
        let keys = server.keys();
        assert!(!keys.iter().any(|key| key.contains("gpu")), "{missing}: {keys:?}");
    }
    set(&server, "gpu", 3, 5);
    let [(_, client), _] = both(&server.url());
    assert_eq!(take(&client, &permits("gpu", 4, 5)).slots.get().len(), 4);
}
