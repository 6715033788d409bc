//! Clients of the version before this one, which know exclusive leases only, and clients of other libraries beside leases
//! that share a name. The scripts of that version are in `older/`.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lock_core::{Answer, Certainty, Claim, Holder, Mode, Owner, Queueing, ReleaseRequest, Released, Terms};
use redis::{Connection, FromRedisValue, Value};
use test_support::RedisServer;

use crate::support::{Client, SOON, both, claim, granted, owner, release_of, take, without_time};

const ACQUIRE: &str = include_str!("older/exclusive_acquire.lua");
const RELEASE: &str = include_str!("older/exclusive_release.lua");

/// The hashes by which clients of that version call these scripts.
const HASHES: [(&str, &str); 2] =
    [(ACQUIRE, "e52578cf4c71d95ae3a0af143282fee7d9238c84"), (RELEASE, "1f87477462d6589975068758c17f4aec0c26df68")];

/// The inbox that the test subscribes to.
const HERE: &str = "leasehold:inbox:00000000000000000000000000000001";

/// A client of the older version.
struct Older {
    connection: Connection,
    name: String,
    owner: Owner,
}

impl Older {
    fn new(server: &RedisServer, name: &str, byte: u8) -> Self {
        Self { connection: server.connection(), name: name.to_owned(), owner: owner(byte) }
    }

    fn script<T: FromRedisValue>(&mut self, text: &str, parts: &[&str], arguments: &[&str]) -> T {
        let beside = |part: &&str| format!("leasehold:{{{}}}:{part}", self.name);
        let keys: Vec<_> =
            ["leasehold:counter".to_owned(), self.name.clone()].into_iter().chain(parts.iter().map(beside)).collect();
        let mut command = redis::cmd("EVAL");
        command.arg(text).arg(keys.len()).arg(keys).arg(arguments);
        command.query(&mut self.connection).unwrap()
    }

    fn mine(&self) -> String {
        format!("lh1:{}:", self.owner.to_wire())
    }

    /// Asks with an inbox; the first word of the answer, or `granted` for a fresh grant.
    fn acquire(&mut self, inbox: &str) -> String {
        let (mine, tombstone) = (self.mine(), format!("t:{}", self.owner.to_wire()));
        let terms = format!("30000 1 {inbox} 4711@older");
        let answer: Value = self.script(ACQUIRE, &[&tombstone, "q", "w", "n"], &["0", &mine, &terms]);
        if matches!(answer, Value::Int(_)) {
            return "granted".to_owned();
        }
        let parts: Vec<Value> = redis::from_redis_value(answer).unwrap();
        redis::from_redis_value(parts[0].clone()).unwrap()
    }

    fn release(&mut self) -> usize {
        let mine = self.mine();
        self.script(RELEASE, &["q", "w"], &[&mine])
    }
}

fn shared(name: &str) -> Claim {
    let terms = Terms { mode: Mode::Shared, ..claim(name).terms };
    Claim { terms, queueing: Queueing::Wanted, ..claim(name) }
}

fn give_back(client: &Client, claim: &Claim) {
    assert_eq!(client.release(&release_of(claim, Certainty::Answered), SOON), Ok(Released::Released));
}

fn stored(server: &RedisServer, name: &str) -> Option<String> {
    server.command(&["GET", name])
}

#[test]
fn the_scripts_are_those_that_older_clients_call() {
    for (text, hash) in HASHES {
        assert_eq!(redis::Script::new(text).get_hash(), hash);
    }
}

#[test]
fn older_clients_stay_out_while_readers_hold_and_are_served_in_turn() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let mut older = Older::new(&server, facade, 1);
        let readers = [shared(facade), shared(facade)];
        readers.iter().for_each(|reader| _ = granted(client.acquire(reader, SOON)));
        assert_eq!((older.acquire("").as_str(), older.acquire("-").as_str()), ("held", "queued"), "{facade}");
        let later = shared(facade);
        assert!(matches!(client.acquire(&later, SOON), Ok(Answer::Queued { position: 2, .. })), "{facade}");
        give_back(&client, &readers[0]);
        assert_eq!(older.acquire("-"), "queued", "{facade}: one reader is left");
        give_back(&client, &readers[1]);
        assert_eq!(older.acquire("-"), "granted", "{facade}: it was handed over");
        assert!(matches!(client.acquire(&later, SOON), Ok(Answer::Queued { position: 1, .. })), "{facade}");
        assert_eq!(older.release(), 1);
        assert_eq!(stored(&server, facade), None, "{facade}: the older version cannot grant what is next");
        granted(client.acquire(&later, SOON));
        give_back(&client, &later);
    }
}

/// Neither version takes the time at which a waiter asked for that of its grant.
#[test]
fn a_grant_by_an_older_client_has_no_age_and_one_to_it_has() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let [mut older, mut waiting] = [1, 2].map(|byte| Older::new(&server, facade, byte));
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        let value = || stored(&server, facade).unwrap();
        assert_eq!(older.acquire("-"), "granted");
        assert!(matches!(client.acquire(&waiter, SOON), Ok(Answer::Queued { .. })), "{facade}");
        assert_eq!(older.release(), 1);
        assert!(value().ends_with(":1@here testing"), "{facade}: {} by an older client", value());
        assert_eq!(waiting.acquire("-"), "queued");
        give_back(&client, &waiter);
        assert!(without_time(&value()).ends_with(":4711@older"), "{facade}: {} by this version", value());
        assert_eq!(waiting.release(), 1);
    }
}

#[test]
fn older_clients_stay_out_while_a_lock_is_kept_and_have_it_afterwards() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (mut older, (mine, _lease)) = (Older::new(&server, facade, 1), take(&client, facade));
        let keep = |time| ReleaseRequest { keep: Some(time), ..release_of(&mine, Certainty::Answered) };
        assert_eq!(client.release(&keep(Duration::from_secs(60)), SOON), Ok(Released::Released));
        assert_eq!((older.acquire("-").as_str(), older.release()), ("queued", 2), "{facade}");
        let asked = client.release(&keep(Duration::from_millis(300)), SOON);
        assert_eq!((asked, older.acquire("").as_str()), (Ok(Released::Released), "held"), "{facade}");
        let until = Instant::now() + SOON;
        while older.acquire("") != "granted" {
            assert!(Instant::now() < until, "{facade}: it is still kept");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(older.release(), 1);
    }
}

/// The older version leaves a waiter that shares where it is, tells it to ask, and grants nothing before it.
#[test]
fn an_older_client_tells_a_waiter_that_shares_to_ask() {
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut inbox = listening.as_pubsub();
    inbox.subscribe(HERE).unwrap();
    inbox.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let over = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(10);
    for (number, fields) in ["x5", "n1 x2147483647", "x1 n1", "x3 z9"].iter().enumerate() {
        let name = format!("job:{number}");
        let [mut holder, mut behind] = [1, 2].map(|byte| Older::new(&server, &name, byte));
        assert_eq!(holder.acquire("-"), "granted");
        let waiter = owner(7).to_wire().to_string();
        server.command::<()>(&["RPUSH", &format!("leasehold:{{{name}}}:q"), &waiter]);
        let entry = format!("{} 30000 1 0 {HERE} {fields} 4711@now", over.as_millis());
        server.command::<()>(&["HSET", &format!("leasehold:{{{name}}}:w"), &waiter, &entry]);
        assert_eq!((holder.release(), behind.acquire("-").as_str()), (1, "queued"), "{name}");
        for _ in 0..2 {
            let told: String = inbox.get_message().unwrap().get_payload().unwrap();
            assert_eq!(told, format!("recheck {name}"));
        }
        assert_eq!(stored(&server, &name), None, "{name}");
    }
}

#[test]
fn other_libraries_stay_out_while_leases_share_a_name_and_the_reverse() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let set =
            |name: &str| server.command::<Option<String>>(&["SET", name, "theirs", "NX", "PX", "30000"]).is_some();
        for mode in [Mode::Shared, Mode::permits(2, 3).unwrap()] {
            let name = format!("{facade}:{mode:?}");
            let width = lock_core::Width::for_waiters(usize::try_from(mode.count()).unwrap());
            let claim = Claim { terms: Terms { mode, ..claim(&name).terms }, width, ..claim(&name) };
            granted(client.acquire(&claim, SOON));
            assert!(!set(&name), "{name}");
            give_back(&client, &claim);
            assert!(set(&name), "{name}");
            let answer = client.acquire(&claim, SOON);
            assert!(matches!(answer, Ok(Answer::Busy { holder: Holder::Foreign, .. })), "{name}: {answer:?}");
            assert_eq!(stored(&server, &name).as_deref(), Some("theirs"));
        }
        let (_, lease) = take(&client, "plain");
        assert!(!set("plain") && lease.slots.get().is_empty());
        server.command::<()>(&["FLUSHALL"]);
    }
}
