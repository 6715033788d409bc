//! Clients of the previous version, which gave places no numbers, share a queue with those of this one, as in a deployment
//! that is replaced process by process. The scripts of the previous version are in `older/`.

use std::env;

use lock_core::Owner;
use lock_redis::by_hand::texts;
use redis::{Connection, FromRedisValue, Value};
use test_support::RedisServer;

/// How many steps a trace has, and how many want the lock at a time at most.
const STEPS: u64 = 600;
const MOST: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Older,
    This,
}

impl Version {
    fn acquire(self) -> &'static str {
        match self {
            Self::Older => include_str!("older/acquire.lua"),
            Self::This => texts().acquire,
        }
    }

    fn release(self) -> &'static str {
        match self {
            Self::Older => include_str!("older/release.lua"),
            Self::This => texts().release,
        }
    }
}

/// What a client passes that heeds no dwell.
const NO_DWELL: &str = "leasehold:no-dwell";
/// What the other keys of a lock begin with.
const LEAD: &str = "leasehold:{";

/// A client that wants the lock.
type Party = (Version, Owner);

/// A server and its expected state: who holds, and who waits in which order.
struct Mixed {
    connection: Connection,
    line: Vec<Party>,
    /// Which step this is, as text.
    at: String,
}

fn mine((_, owner): Party) -> String {
    format!("lh1:{}:", owner.to_wire())
}

impl Mixed {
    fn script<T: FromRedisValue>(&mut self, text: &str, keys: &[String], arguments: &[&str]) -> T {
        let mut command = redis::cmd("EVAL");
        command.arg(text).arg(keys.len()).arg(keys).arg(arguments);
        command.query(&mut self.connection).unwrap()
    }

    fn acquire(&mut self, party: Party) {
        let key = |part: &str| format!("leasehold:{{job}}:{part}");
        let tombstone = key(&format!("t:{}", party.1.to_wire()));
        let [lock, counter, dwell] = ["job", "leasehold:counter", NO_DWELL].map(str::to_owned);
        let keys: &[_] = match party.0 {
            Version::Older => &[lock, counter, tombstone, key("q"), key("w")],
            Version::This => &[counter, dwell, lock],
        };
        let mine = mine(party);
        let arguments: &[&str] = match party.0 {
            Version::Older => &[&mine, "30000", "1", "0", "4711@here why", "-"],
            Version::This => &["0", "70000", LEAD, &mine, "30000 1 - 4711@here why"],
        };
        let said: Value = self.script(party.0.acquire(), keys, arguments);
        let place = self.line.iter().position(|other| *other == party);
        let at = format!("{}: {party:?} among {:?} was answered {said:?}", self.at, self.line);
        if let Value::Int(_) = said {
            assert!(self.line.is_empty(), "{at}");
        } else {
            let parts: Vec<Value> = redis::from_redis_value(said).unwrap();
            let number = |index: usize| redis::from_redis_value::<i64>(parts[index].clone()).unwrap();
            if parts[0] == Value::BulkString("granted".into()) {
                assert_eq!(place, Some(0), "{at}");
            } else {
                assert_eq!((&parts[0], parts.len()), (&Value::BulkString("queued".into()), 6), "{at}");
                assert_ne!(place, Some(0), "{at}");
                let is_next = place.unwrap_or(self.line.len()) == 1;
                assert!(party.0 == Version::Older || (number(3) == 1) == is_next, "{at}");
            }
        }
        if place.is_none() {
            self.line.push(party);
        }
    }

    fn release(&mut self, index: usize) {
        let party = self.line.remove(index);
        let mine = mine(party);
        let (keys, arguments): (&[_], &[&str]) = match party.0 {
            Version::Older => (&["job", "leasehold:counter", "leasehold:{job}:q", "leasehold:{job}:w"], &[&mine]),
            Version::This => (&["leasehold:counter", NO_DWELL, "job"], &[LEAD, &mine]),
        };
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let said: usize = self.script(party.0.release(), &keys, arguments);
        assert_eq!(said, if index == 0 { 1 } else { 2 }, "{}: {party:?}", self.at);
    }

    /// The first of the remaining clients holds the lock.
    fn check(&mut self) {
        let held: Option<String> = redis::cmd("GET").arg("job").query(&mut self.connection).unwrap();
        let expected = self.line.first().map(|party| mine(*party));
        match (&held, &expected) {
            (Some(held), Some(expected)) => assert!(held.starts_with(expected), "{}: {held}, not {expected}", self.at),
            (None, None) => {}
            other @ ((Some(_), None) | (None, Some(_))) => panic!("{}: {other:?}", self.at),
        }
    }
}

#[test]
fn older_clients_and_these_share_one_queue() {
    let one = env::var("LEASEHOLD_SEED").map(|seed| vec![seed.parse().unwrap()]);
    let seeds: Vec<u64> = one.unwrap_or_else(|_| (1..5).collect());
    let server = RedisServer::start();
    for seed in seeds {
        server.command::<()>(&["FLUSHALL"]);
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut mixed = Mixed { connection: server.connection(), line: Vec::new(), at: String::new() };
        for step in 0..STEPS {
            mixed.at = format!("seed {seed}, step {step}");
            match (dice.u8(..10), mixed.line.len()) {
                (0..4, length) if length < MOST => {
                    let version = if dice.bool() { Version::Older } else { Version::This };
                    mixed.acquire((version, Owner::from_random(dice.u128(..).to_be_bytes())));
                }
                (4..7, length @ 1..) => mixed.acquire(mixed.line[dice.usize(..length)]),
                (7.., length @ 1..) => mixed.release(dice.usize(..length)),
                _ => {}
            }
            mixed.check();
        }
    }
}
