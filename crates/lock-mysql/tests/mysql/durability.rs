//! What was answered outlives a crash of the server, where each commit reaches the disk, as it does by default.

use std::time::Duration;

use lock_core::inspect::{Entry, Revoked};
use lock_core::latch::{Act, Request, Watching};
use lock_core::{Claim, Fenced, Holder, Lease, Limit, Mode, ReleaseRequest, Released, TokenRange, limit};
use test_support::{MysqlOptions, MysqlServer};

use crate::support::{
    Client, SOON, Session, claim, client, code, is_queued, lasting, low, operator, permits, release_of, releases, take,
    waiting,
};

const LONG: Duration = Duration::from_secs(3600);
const MINUTES: Duration = Duration::from_secs(300);
/// Prepares something for which a request is made that somebody relies on.
type Prepare = fn(&Client) -> Answer;
/// Makes the request.
type Answer = Box<dyn FnOnce(&Client) -> Check>;
/// Whether what was answered is still so.
type Check = Box<dyn Fn(&Client) -> bool>;

const KINDS: [(&str, Prepare); 11] = [
    ("grant", |_| granting(claim("grant"))),
    ("grant to a reader", |_| granting(claim("read").in_mode(Mode::Shared))),
    ("grant of permits", |_| granting(permits("permits", 2, 3))),
    ("grant past those who wait", replacement),
    ("hand-over", hand_over),
    ("hand-over to readers", hand_over_to_a_reader),
    ("renewal", renewal),
    ("limit", limit_that_is_set),
    ("latch", latch),
    ("revocation", revocation),
    ("kept lock", kept),
];

fn entry(client: &Client, name: &str) -> Option<Entry> {
    client.holder(&name.parse().unwrap(), SOON).unwrap()
}

fn tokens_of(client: &Client, name: &str) -> Option<TokenRange> {
    match entry(client, name)?.holder {
        Holder::Leasehold { tokens, .. } => Some(tokens),
        Holder::Foreign => None,
    }
}

/// It lasts: the lease that holds the lock now.
fn stays(client: &Client, name: &'static str) -> Check {
    let tokens = tokens_of(client, name).expect("somebody has the lock");
    Box::new(move |client| tokens_of(client, name) == Some(tokens))
}

fn granting(claim: Claim) -> Answer {
    Box::new(move |client| {
        let tokens = take(client, &claim).tokens;
        Box::new(move |client| tokens_of(client, claim.name.as_str()) == Some(tokens))
    })
}

fn held(client: &Client, name: &str) -> (Claim, Lease) {
    let claim = claim(name);
    let lease = take(client, &claim);
    (claim, lease)
}

fn replacement(client: &Client) -> Answer {
    let (held, _) = held(client, "replaced");
    is_queued(client.acquire(&waiting("replaced"), SOON), 1);
    granting(Claim { replaces: Some(held.owner), ..claim("replaced") })
}

fn hand_over(client: &Client) -> Answer {
    let (held, _) = held(client, "handed");
    is_queued(client.acquire(&waiting("handed"), SOON), 1);
    Box::new(move |client| {
        releases(client, &held);
        stays(client, "handed")
    })
}

fn hand_over_to_a_reader(client: &Client) -> Answer {
    let (held, _) = held(client, "to-a-reader");
    is_queued(client.acquire(&waiting("to-a-reader").in_mode(Mode::Shared), SOON), 1);
    Box::new(move |client| {
        releases(client, &held);
        stays(client, "to-a-reader")
    })
}

fn renewal(client: &Client) -> Answer {
    let (_, lease) = held(client, "renewed");
    let longer = Lease { terms: lasting(LONG, claim("renewed")).terms, ..lease };
    Box::new(move |client| {
        client.renew(&[longer], SOON).unwrap();
        Box::new(|client| entry(client, "renewed").unwrap().remaining.unwrap() > MINUTES)
    })
}

fn limit_that_is_set(_: &Client) -> Answer {
    let request = |act| limit::Request { name: "limited".parse().unwrap(), known: Limit::new(2).unwrap(), act };
    Box::new(move |client| {
        client.limit(&request(limit::Act::Set(Limit::new(7).unwrap())), SOON).unwrap();
        Box::new(move |client| client.limit(&request(limit::Act::Look), SOON).unwrap().limit.get() == 7)
    })
}

fn latch(_: &Client) -> Answer {
    let request = |act| Request { name: "start".parse().unwrap(), act };
    let ttl = claim("start").terms.ttl;
    Box::new(move |client| {
        client.latch(&request(Act::Arrive { id: "one".parse().unwrap(), call: 1, ttl }), SOON).unwrap();
        Box::new(move |client| {
            let seen = client.latch(&request(Act::Look { watching: Watching::Unwanted }), SOON).unwrap();
            seen.state.is_some_and(|state| state.arrived == 1)
        })
    })
}

fn revocation(client: &Client) -> Answer {
    let (_, lease) = held(client, "revoked");
    Box::new(move |client| {
        let high = lease.tokens.high();
        assert_eq!(client.revoke(&lease.name, high, &operator(), SOON), Ok(Revoked::Revoked));
        Box::new(move |client| {
            let by = client.revoked_by(&lease.name, high, SOON).unwrap();
            by == Some(operator()) && client.fence(&lease, SOON) == Ok(Fenced::NotHeld)
        })
    })
}

fn kept(client: &Client) -> Answer {
    let (held, lease) = held(client, "kept");
    Box::new(move |client| {
        let request = ReleaseRequest { keep: Some(MINUTES), ..release_of(&held) };
        assert_eq!(client.release(&request, SOON), Ok(Released::Released));
        // What its owner has released, though it may not be free, is its owner's no more.
        Box::new(move |client| client.fence(&lease, SOON) == Ok(Fenced::NotHeld) && tokens_of(client, "kept").is_some())
    })
}

/// How commits are answered from now on: when they are on disk (1), or when they are in the memory of the server (0).
fn flush(server: &MysqlServer, setting: u8) {
    server.execute(&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {setting}"));
}

/// A server that keeps what was committed in its memory, if configured so, so that a crash loses it.
fn forgetful() -> MysqlServer {
    MysqlServer::start_with(MysqlOptions::default().arguments(&["innodb_flush_log_at_timeout=2700"]))
}

/// Kills the server after each kind of answer, and returns the kinds that are lost then.
fn lost_in_crashes(server: &mut MysqlServer, setting: u8) -> Vec<&'static str> {
    let mut lost = Vec::new();
    for (what, prepare) in KINDS {
        flush(server, 1);
        let clients = client(&server.url());
        let answer = prepare(&clients);
        flush(server, setting);
        let is_kept = answer(&clients);
        server.restart_with_data();
        if !is_kept(&client(&server.url())) {
            lost.push(what);
        }
    }
    lost
}

#[test]
fn everything_that_was_answered_outlives_a_crash() {
    let mut server = MysqlServer::start();
    assert_eq!(server.execute("SELECT @@innodb_flush_log_at_trx_commit"), "1", "the default");
    assert_eq!(lost_in_crashes(&mut server, 1), Vec::<&str>::new());
}

#[test]
fn without_waiting_for_the_disk_answers_are_lost_in_a_crash() {
    let mut server = forgetful();
    // The server may write its memory to disk at any time, for reasons of its own.
    let lost = lost_in_crashes(&mut server, 0);
    assert!(lost.len() * 2 > KINDS.len(), "{lost:?}");
}

/// Frees a lock, and crashes before that is on disk; frees it again. Returns the versions that were seen of it as free.
fn versions_of_free_locks(release: &str) -> [i64; 2] {
    let versions = (0..5).find_map(|_| versions_if_lost(release));
    versions.expect("a crash that loses a release: the server wrote each one to disk")
}

/// `None` if the server wrote the release to disk before the crash, for reasons of its own.
fn versions_if_lost(release: &str) -> Option<[i64; 2]> {
    let mut server = forgetful();
    let script = include_str!("../../src/schema.sql").replace("SET version = GREATEST(version + 1, t) WHERE", release);
    server.execute(&script);
    let (clients, claim) = (client(&server.url()), claim("report"));
    take(&clients, &claim);
    let version = |server: &MysqlServer| {
        Session::connect(&server.url()).value::<i64>("SELECT version FROM leasehold_lock WHERE name = 'report'")
    };
    flush(&server, 0);
    releases(&clients, &claim);
    let first = version(&server);
    server.restart_with_data();
    let clients = client(&server.url());
    tokens_of(&clients, "report")?;
    releases(&clients, &claim);
    Some([first, version(&server)])
}

/// A client that loaded the lost version would otherwise commit what it has decided to another state.
#[test]
fn a_version_that_a_crash_has_lost_is_never_that_of_another_state() {
    let [lost, later] = versions_of_free_locks("SET version = GREATEST(version + 1, t) WHERE");
    assert!(later > lost);
    let [lost, later] = versions_of_free_locks("SET version = version + 1 WHERE");
    assert_eq!(later, lost);
}

#[test]
fn a_later_turn_that_was_fenced_ends_the_earlier_ones_after_a_crash_too() {
    let mut server = MysqlServer::start();
    let wide = Claim { width: lock_core::Width::for_waiters(2), ..claim("till") };
    let token = low(&take(&client(&server.url()), &wide));
    let user = Session::connect(&server.url());
    user.begin("till", token + 1).unwrap();
    user.run("COMMIT").unwrap();
    user.begin("till", token + 1).unwrap();
    server.restart_with_data();
    let user = Session::connect(&server.url());
    assert_eq!(code(user.begin("till", token)), "LH001");
    user.begin("till", token + 1).unwrap();
}
