//! Who may do what, and who makes the tables.

use std::sync::{Arc, Barrier};

use lock_core::{BackendError, Effect, ErrorKind};
use lock_postgres::{PostgresConfig, blocking, setup};
use test_support::{PostgresOptions, PostgresServer};

use crate::support::{
    Client, SOON, Session, claim, client, code, end, is_queued, low, meanwhile, operator, permits, releases, server,
    take, waiting,
};

const NOT_ALLOWED: &str = "42501";

/// A server with a database of its owner, in which nobody else may create anything.
fn with_roles() -> PostgresServer {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    for role in ["owner", "locker", "fencer", "stranger"] {
        server.psql(&format!("CREATE ROLE \"{role}\" LOGIN"));
    }
    server.psql("CREATE DATABASE shop OWNER \"owner\"");
    let script = setup("leasehold", "locker", "fencer").unwrap();
    Session::connect(&url_of(&server, "owner")).run(&script).unwrap();
    server
}

fn url_of(server: &PostgresServer, role: &str) -> String {
    format!("postgres://{role}@127.0.0.1:{}/shop?sslmode=disable", server.port())
}

fn session_of(server: &PostgresServer, role: &str) -> Session {
    let session = Session::connect(&url_of(server, role));
    session.run("SET search_path = leasehold").unwrap();
    session
}

const TABLES: [&str; 8] = ["lock", "hold", "place", "free_slot", "tombstone", "revocation", "latch", "arrival"];

fn uses_all_of_it(client: &Client) {
    let (first, second) = (claim("report"), waiting("report"));
    let lease = take(client, &first);
    is_queued(client.acquire(&second, SOON), 1);
    client.renew(std::slice::from_ref(&lease), SOON).unwrap();
    releases(client, &first);
    let lease = take(client, &second);
    let entry = client.holder(&lease.name, SOON).unwrap().unwrap();
    assert_eq!(entry.leases, 1);
    client.revoke(&lease.name, lease.tokens.low(), &operator(), SOON).unwrap();
    let permits = permits("gpu", 2, 3);
    take(client, &permits);
    releases(client, &permits);
    let ttl = claim("start").terms.ttl;
    let act = lock_core::latch::Act::Arrive { id: "one".parse().unwrap(), call: 1, ttl };
    client.latch(&lock_core::latch::Request { name: "start".parse().unwrap(), act }, SOON).unwrap();
}

#[test]
fn a_locker_uses_locks_and_reads_no_table() {
    let server = with_roles();
    uses_all_of_it(&client(&url_of(&server, "locker")));
    let session = session_of(&server, "locker");
    for table in TABLES.into_iter().chain(["turn"]) {
        assert_eq!(code(session.run(&format!("SELECT * FROM {table}"))), NOT_ALLOWED, "{table}");
        assert_eq!(code(session.run(&format!("DELETE FROM {table}"))), NOT_ALLOWED, "{table}");
    }
    assert_eq!(code(session.run("UPDATE layout SET oldest = 2")), NOT_ALLOWED);
    assert_eq!(code(session.run("CREATE TABLE leasehold.mine ()")), NOT_ALLOWED);
}

#[test]
fn a_fencer_fences_and_does_nothing_else() {
    let server = with_roles();
    let token = low(&take(&client(&url_of(&server, "locker")), &claim("stock")));
    let fencer = session_of(&server, "fencer");
    fencer.begin("stock", token).unwrap();
    fencer.run("COMMIT").unwrap();
    assert_eq!(code(fencer.begin("stock", token + 1)), "LH001");
    for table in TABLES.into_iter().chain(["turn", "layout"]) {
        assert_eq!(code(fencer.run(&format!("SELECT * FROM {table}"))), NOT_ALLOWED, "{table}");
    }
    for call in [
        "claim_1('{}')",
        "release_1('{}')",
        "commit_1('{}')",
        "load_1('{}')",
        "make_1('{}')",
        "show_1('{}')",
        "list_1('{}')",
        "renew_1('{}')",
        "load_latch_1('{}')",
        "commit_latch_1('{}')",
        "end_hold('stock', NULL)",
        "shown('stock', 1, '{}')",
        "fenced('{}')",
        "durably('on')",
    ] {
        assert_eq!(code(fencer.run(&format!("SELECT {call}"))), NOT_ALLOWED, "{call}");
    }
    let stranger = Session::connect(&url_of(&server, "stranger"));
    assert_eq!(code(stranger.run("SELECT leasehold.fence('stock', 1)")), NOT_ALLOWED);
}

/// A function that runs with the rights of the owner must not look for names where its caller says.
#[test]
fn the_functions_use_no_tables_or_operators_of_their_caller() {
    let server = with_roles();
    let definer = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'leasehold'::regnamespace AND prosecdef \
                   AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY(proconfig), false)";
    assert_eq!(server.psql_in("shop", definer), "0");
    let fencer = session_of(&server, "fencer");
    fencer.run("CREATE TEMPORARY TABLE hold (name text, until bigint); SET search_path = pg_temp").unwrap();
    assert_eq!(code(fencer.run("SELECT leasehold.fence('stock', 1)")), "LH001");
}

/// Any role of the database may listen to any channel.
#[test]
fn no_owner_is_shown_or_notified() {
    let place = crate::support::Place::new();
    let (client, first, second) = (place.client(), claim("report"), waiting("report"));
    take(&client, &first);
    is_queued(client.acquire(&second, SOON), 1);
    let mut listening = Listening::to(&place);
    releases(&client, &first);
    let told = listening.next();
    assert!(told.contains("grant"), "{told}");
    let session = place.session();
    let shown = ["show_1('{\"name\": \"report\"}')", "list_1('{\"after\": \"\", \"prefix\": \"\", \"most\": 9}')"];
    let shown = shown.map(|call| session.value::<String>(&format!("SELECT {call}::text")));
    for text in [told].into_iter().chain(shown) {
        let plain = text.replace('-', "");
        assert!([&first, &second].iter().all(|claim| !plain.contains(&claim.owner.to_wire())), "{text}");
    }
}

/// A stranger who listens to the channels of all waiters of a schema.
struct Listening(lock_host::Bridge, tokio_postgres::Client, tokio::sync::mpsc::UnboundedReceiver<String>);

impl Listening {
    fn to(place: &crate::support::Place) -> Self {
        let (bridge, (tell, told)) = (lock_host::Bridge::start().unwrap(), tokio::sync::mpsc::unbounded_channel());
        let url = place.server.url();
        let client = bridge.block_on(async {
            let (client, mut connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(std::future::poll_fn(move |context| {
                while let std::task::Poll::Ready(next) = connection.poll_message(context) {
                    let Some(Ok(message)) = next else { return std::task::Poll::Ready(()) };
                    if let tokio_postgres::AsyncMessage::Notification(notification) = message {
                        _ = tell.send(notification.payload().to_owned());
                    }
                }
                std::task::Poll::Pending
            }));
            client
        });
        let channel = place.session().value::<String>("SELECT channel FROM place");
        bridge.block_on(client.batch_execute(&format!("LISTEN {channel}"))).unwrap();
        Self(bridge, client, told)
    }

    /// What is notified next, except the bells that listeners ring for themselves.
    fn next(&mut self) -> String {
        loop {
            let next = self.0.block_on(async { tokio::time::timeout(SOON, self.2.recv()).await });
            let told = next.expect("a notification").unwrap();
            if !told.is_empty() {
                assert!(!self.1.is_closed());
                return told;
            }
        }
    }
}

fn refusal(url: &str) -> BackendError {
    blocking::connect(&PostgresConfig::from_url(url).unwrap()).unwrap_err()
}

#[test]
fn a_role_that_may_not_create_is_told_what_to_do_and_changes_nothing() {
    let server = with_roles();
    let error = refusal(&format!("{}&schema=another", url_of(&server, "locker")));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(error.to_string().contains("another"), "{error}");
    assert!(error.remedy().unwrap().contains("leasehold postgres schema"), "{error:?}");
    assert_eq!(server.psql_in("shop", "SELECT to_regnamespace('another') IS NULL"), "t");
    // The schema is there, but not for this role.
    let error = refusal(&url_of(&server, "stranger"));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(error.remedy().is_some(), "{error:?}");
}

#[test]
fn names_of_roles_are_quoted() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile());
    server.psql(r#"CREATE ROLE "a ""b" LOGIN"#);
    let script = setup("apart", "a \"b", "a \"b").unwrap();
    Session::connect(&server.url()).run(&script).unwrap();
    assert_eq!(server.psql(r#"SELECT has_schema_privilege('a "b', 'apart', 'USAGE')"#), "t");
}

#[test]
fn tables_of_a_layout_that_this_client_does_not_know_are_refused() {
    let place = crate::support::Place::new();
    let session = place.session();
    session.run("UPDATE layout SET version = 99, oldest = 98").unwrap();
    let error = refusal(&place.url());
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error:?}");
    for number in ["99", "98", "1"] {
        assert!(error.to_string().contains(number), "{error}");
    }
    // A newer one may say that older clients can still use it.
    session.run("UPDATE layout SET version = 99, oldest = 1").unwrap();
    take(&client(&place.url()), &claim("report"));
    session.run("UPDATE layout SET version = 0, oldest = 0").unwrap();
    assert!(refusal(&place.url()).remedy().unwrap().contains("of this version"));
    session.run("DELETE FROM layout").unwrap();
    assert_eq!(refusal(&place.url()).kind(), ErrorKind::Config);
}

#[test]
fn clients_that_come_at_once_to_an_empty_database_all_work() {
    let server = server();
    let url = server.database("empty");
    let together = Arc::new(Barrier::new(6));
    let clients: Vec<_> = (0..6)
        .map(|i| {
            let (url, together) = (url.clone(), Arc::clone(&together));
            meanwhile(move || {
                together.wait();
                take(&client(&url), &claim(&format!("job {i}")));
            })
        })
        .collect();
    for client in clients {
        end(client);
    }
    assert_eq!(server.psql_in("empty", "SELECT count(*) FROM leasehold.hold"), "6");
}

#[test]
fn a_schema_that_somebody_else_made_is_left_alone() {
    let server = server();
    let session = Session::connect(&server.url());
    session.run("CREATE SCHEMA theirs; CREATE FUNCTION theirs.one() RETURNS int LANGUAGE sql AS 'SELECT 1'").unwrap();
    let config = PostgresConfig::from_url(&format!("{}&schema=theirs", server.url())).unwrap();
    let error = blocking::connect(&config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("was not made by this library"), "{error}");
    let public: bool = session.value("SELECT has_function_privilege('public', 'theirs.one()', 'EXECUTE')");
    assert!(public, "others may run it as before");
}

#[test]
fn a_schema_may_be_named_like_a_keyword() {
    let server = server();
    let client = client(&format!("{}&schema=user", server.url()));
    take(&client, &claim("a"));
    let session = Session::connect(&server.url());
    assert_eq!(session.value::<i64>("SELECT count(*) FROM \"user\".hold"), 1);
}
