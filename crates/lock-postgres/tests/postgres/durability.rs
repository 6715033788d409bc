//! What was answered outlives a crash of the server, although its commits do not wait for the disk by default.

use std::time::Duration;

use lock_core::inspect::{Entry, Revoked};
use lock_core::latch::{Act, Request, Watching};
use lock_core::{Claim, Fenced, Holder, Lease, Limit, Mode, ReleaseRequest, Released, TokenRange, limit};
use test_support::{PostgresOptions, PostgresServer};

use crate::support::{
    Client, Place, SOON, Session, claim, client, is_queued, lasting, make_twin, operator, permits, release_of,
    releases, take, waiting,
};

const LONG: Duration = Duration::from_secs(3600);
const MINUTES: Duration = Duration::from_secs(300);
/// What makes commits wait for the disk.
const DURABLY: &str =
    "PERFORM set_config('synchronous_commit', CASE WHEN before = 'remote_apply' THEN before ELSE 'on' END, true);";

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

/// A server that keeps what was committed in its memory for seconds, so that a crash loses it.
fn forgetful() -> PostgresServer {
    let lazily = ["-c", "synchronous_commit=off", "-c", "wal_writer_delay=10s"];
    PostgresServer::start_with(PostgresOptions::default().volatile().arguments(&lazily))
}

/// Kills the server after each kind of answer, and returns the kinds that are lost then.
fn lost_in_crashes(server: &mut PostgresServer, schema: &str) -> Vec<&'static str> {
    let url = format!("{}&schema={schema}", server.url());
    let mut lost = Vec::new();
    for (what, prepare) in KINDS {
        let clients = client(&url);
        let answer = prepare(&clients);
        server.psql("CHECKPOINT");
        let is_kept = answer(&clients);
        server.restart_with_data();
        if !is_kept(&client(&url)) {
            lost.push(what);
        }
    }
    lost
}

#[test]
fn everything_that_somebody_relies_on_outlives_a_crash() {
    let mut server = forgetful();
    make_twin(&server, "locks", &[]);
    assert_eq!(lost_in_crashes(&mut server, "locks"), Vec::<&str>::new());
}

#[test]
fn without_waiting_for_the_disk_everything_is_lost_in_a_crash() {
    let mut server = forgetful();
    make_twin(&server, "lazy", &[(DURABLY, "NULL;")]);
    server.psql("CHECKPOINT");
    assert_eq!(lost_in_crashes(&mut server, "lazy"), KINDS.map(|(what, _)| what));
}

/// Frees a lock, and crashes before that is on disk; frees it again. Returns the versions that were seen of it as free.
fn versions_of_free_locks(changes: &[(&str, &str)]) -> [i64; 2] {
    let mut server = forgetful();
    make_twin(&server, "locks", changes);
    let url = format!("{}&schema=locks", server.url());
    let (clients, claim) = (client(&url), claim("report"));
    take(&clients, &claim);
    let version = |server: &PostgresServer| {
        Session::connect(&server.url()).value::<i64>("SELECT version FROM locks.lock WHERE name = 'report'")
    };
    releases(&clients, &claim);
    let first = version(&server);
    server.restart_with_data();
    let clients = client(&url);
    assert!(tokens_of(&clients, "report").is_some(), "the release was lost");
    releases(&clients, &claim);
    [first, version(&server)]
}

/// A client that loaded the lost version would otherwise commit what it has decided to another state.
#[test]
fn a_version_that_a_crash_has_lost_is_never_that_of_another_state() {
    let [lost, later] = versions_of_free_locks(&[]);
    assert!(later > lost);
    let [lost, later] = versions_of_free_locks(&[("version = greatest(o.version + 1, t)", "version = o.version + 1")]);
    assert_eq!(later, lost);
}

/// What the default of a database is, and how a commit that must be durable waits then, and one that need not be.
#[test]
fn commits_wait_for_the_disk_at_least_and_for_replicas_if_that_is_the_default() {
    let place = Place::new();
    let session = place.session();
    for (default, durable) in
        [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
    {
        session.run(&format!("SET synchronous_commit = {default}; BEGIN")).unwrap();
        let before = session.value::<String>("SELECT \"begin\"('1000')");
        assert_eq!(before, default);
        assert_eq!(session.value::<String>("SHOW synchronous_commit"), "off");
        session.run(&format!("SELECT durably('{before}')")).unwrap();
        assert_eq!(session.value::<String>("SHOW synchronous_commit"), durable, "{default}");
        session.run("COMMIT").unwrap();
        assert_eq!(session.value::<String>("SHOW synchronous_commit"), default);
    }
}
