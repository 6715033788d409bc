//! Who may do what, and who makes the tables.

use std::process::{Command, Output};
use std::sync::{Arc, Barrier};

use lock_core::{BackendError, Effect, ErrorKind};
use lock_mysql::{MysqlConfig, blocking, setup};
use test_support::bounds::wait_for;
use test_support::{Finish as _, MysqlServer, Product};

use crate::support::{
    Client, Place, SOON, Session, claim, client, code, dialect, end, is_queued, low, meanwhile, new_server, operator,
    permits, releases, take, waiting,
};

/// The SQLSTATE of what an account may not do.
const NOT_ALLOWED: &str = "42000";
const TABLES: [&str; 9] =
    ["lock", "hold", "identity", "place", "free_slot", "tombstone", "revocation", "latch", "arrival"];
const PROCEDURES: [&str; 10] = [
    "claim_1",
    "release_1",
    "commit_1",
    "load_1",
    "make_1",
    "show_1",
    "list_1",
    "renew_1",
    "load_latch_1",
    "commit_latch_1",
];

/// A server with a database of an administrator's, in which nobody else may create anything.
fn with_roles() -> MysqlServer {
    let server = new_server();
    server.execute("CREATE DATABASE shop");
    for account in ["locks", "fencer", "stranger"] {
        server.execute(&format!("CREATE USER {account}@'%'"));
    }
    let script = setup("locks", "'fencer'@'%'").unwrap();
    server.execute_in("shop", &script);
    server
}

fn url_of(server: &MysqlServer, account: &str) -> String {
    format!("mysql://{account}@127.0.0.1:{}/shop", server.port())
}

fn session_of(server: &MysqlServer, account: &str) -> Session {
    Session::connect(&url_of(server, account))
}

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
    assert_eq!(client.list(&lock_core::inspect::Query::all(), SOON).unwrap().entries.len(), 1);
    releases(client, &permits);
    let ttl = claim("start").terms.ttl;
    let act = lock_core::latch::Act::Arrive { id: "one".parse().unwrap(), call: 1, ttl };
    client.latch(&lock_core::latch::Request { name: "start".parse().unwrap(), act }, SOON).unwrap();
}

#[track_caller]
fn may_not(session: &Session, statement: &str) {
    assert_eq!(code(session.run(statement)), NOT_ALLOWED, "{statement}");
}

#[test]
fn a_locker_uses_locks_and_reads_no_table() {
    let server = with_roles();
    uses_all_of_it(&client(&url_of(&server, "locks")));
    let session = session_of(&server, "locks");
    for table in TABLES {
        may_not(&session, &format!("SELECT * FROM leasehold_{table}"));
        may_not(&session, &format!("DELETE FROM leasehold_{table}"));
    }
    may_not(&session, "UPDATE leasehold_layout SET oldest = 2");
    may_not(&session, "CREATE TABLE mine (x INT)");
    may_not(&session, "CALL leasehold_holds('report', '', FALSE, @answer)");
    may_not(&session, "CALL leasehold_end_hold('report', '')");
}

#[test]
fn a_locker_fences_and_a_fencer_does_nothing_else() {
    let server = with_roles();
    let token = low(&take(&client(&url_of(&server, "locks")), &claim("stock")));
    for account in ["fencer", "locks"] {
        let user = session_of(&server, account);
        user.begin("stock", token).unwrap();
        user.run("COMMIT; START TRANSACTION").unwrap();
        user.run(&format!("CALL leasehold_fence_1('stock', {token}, {token})")).unwrap();
        user.run("COMMIT").unwrap();
        assert_eq!(code(user.begin("stock", token + 1)), "LH001");
    }
    let fencer = session_of(&server, "fencer");
    for table in TABLES.into_iter().chain(["layout"]) {
        may_not(&fencer, &format!("SELECT * FROM leasehold_{table}"));
    }
    for procedure in PROCEDURES {
        may_not(&fencer, &format!("CALL leasehold_{procedure}('{{}}')"));
    }
    may_not(&fencer, "CALL leasehold_end_hold('stock', '')");
    may_not(&fencer, "CALL leasehold_shown('stock', 1, @answer)");
    let stranger = mysql::Conn::new(crate::support::driver_opts(&url_of(&server, "stranger"))).map(drop);
    assert_eq!(code(stranger), NOT_ALLOWED, "the database is not for everybody");
}

/// The procedures have the rights of an administrator, for whom a server that only reads makes an exception.
#[test]
fn a_server_that_begins_to_only_read_grants_nothing() {
    let server = with_roles();
    let client = client(&url_of(&server, "locks"));
    let lease = take(&client, &claim("before"));
    for variable in dialect().read_only {
        server.execute(&format!("SET GLOBAL {variable} = ON"));
        let claimed = client.acquire(&claim("after"), SOON).unwrap_err();
        let renewed = client.renew(std::slice::from_ref(&lease), SOON).unwrap_err();
        for error in [claimed, renewed] {
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
        }
    }
    server.execute("SET GLOBAL read_only = OFF");
    take(&client, &claim("after"));
}

#[test]
fn no_owner_is_shown() {
    let place = Place::new();
    let (client, first, second) = (place.client(), claim("report"), waiting("report"));
    take(&client, &first);
    is_queued(client.acquire(&second, SOON), 1);
    let session = place.session();
    for call in ["show_1('{\"name\": \"report\"}')", "list_1('{\"after\": \"\", \"prefix\": \"\", \"most\": 9}')"] {
        let text: String = session.value(&format!("CALL leasehold_{call}"));
        assert!(text.contains("report"), "{text}");
        assert!([&first, &second].iter().all(|claim| !text.contains(&claim.owner.to_wire())), "{text}");
    }
}

fn refusal(url: &str) -> BackendError {
    let config = MysqlConfig::from_url(url).unwrap();
    let refused = wait_for("the end of connecting", || match blocking::connect(&config) {
        Err(error) if error.to_string().contains("within") || error.to_string().contains("in time") => Err(error),
        outcome => Ok(outcome),
    });
    refused.expect_err("it is refused")
}

#[test]
fn an_account_that_may_not_create_is_told_what_to_do_and_changes_nothing() {
    let server = with_roles();
    server.execute("CREATE DATABASE another; GRANT SELECT ON another.* TO locks@'%'");
    let error = refusal(&url_of(&server, "locks").replace("/shop", "/another"));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(error.to_string().contains("the tables are missing in another"), "{error}");
    assert!(error.remedy().unwrap().contains("leasehold mysql s"), "{error:?}");
    assert_eq!(server.execute_in("another", "SHOW TABLES"), "");
    // The database is there, but not for this account.
    let error = refusal(&url_of(&server, "stranger"));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(error.remedy().is_some(), "{error:?}");
    // It sees the layout, and may not run the procedures.
    server.execute("GRANT SELECT ON shop.leasehold_layout TO stranger@'%'");
    let error = refusal(&url_of(&server, "stranger"));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("grant the rights")), "{error:?}");
}

#[test]
fn tables_of_a_layout_that_this_client_does_not_know_are_refused() {
    let place = Place::new();
    let session = place.session();
    session.run("UPDATE leasehold_layout SET version = 99, oldest = 98").unwrap();
    let error = refusal(&place.url);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error:?}");
    for number in ["99", "98", "1"] {
        assert!(error.to_string().contains(number), "{error}");
    }
    // A newer one may say that older clients can still use it.
    session.run("UPDATE leasehold_layout SET version = 99, oldest = 1").unwrap();
    take(&client(&place.url), &claim("report"));
    session.run("UPDATE leasehold_layout SET version = 0, oldest = 0").unwrap();
    assert!(refusal(&place.url).remedy().unwrap().contains("of this version"));
}

#[test]
fn clients_that_come_at_once_to_an_empty_database_all_work() {
    const CLIENTS: usize = 8;
    let place = Place::empty();
    let together = Arc::new(Barrier::new(CLIENTS));
    let come = |i| {
        let (url, together) = (place.url.clone(), Arc::clone(&together));
        meanwhile(move || {
            together.wait();
            take(&client(&url), &claim(&format!("job {i}")));
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(come).collect();
    clients.into_iter().for_each(end);
    assert_eq!(place.session().value::<usize>("SELECT COUNT(*) FROM leasehold_hold"), CLIENTS);
    assert_eq!(place.session().value::<usize>("SELECT COUNT(*) FROM leasehold_layout"), 1);
}

/// The script up to different statements, each time with what ends it for the client program.
fn parts_of_the_script() -> Vec<String> {
    let whole = setup("nobody", "nobody").unwrap();
    let script = whole.split_once("GRANT EXECUTE").unwrap().0;
    let statements: Vec<_> = script.split_inclusive(" //\n").collect();
    let last = statements.len() - 1;
    let made = [2, 5, 12, 14, 20, last - 2, last - 1, last];
    made.into_iter().map(|made| format!("{}\nDELIMITER ;\n", statements[..made].concat())).collect()
}

/// Runs a script in a database as the account of its clients.
fn run_as_client(place: &Place, script: &str) {
    let told = as_account("locker", &place.session(), place.database(), script);
    assert!(told.status.success(), "{told:?}");
}

fn as_account(user: &str, session: &Session, database: &str, script: &str) -> Output {
    let socket = format!("--socket={}", session.value::<String>("SELECT @@socket"));
    let mut program = Command::new("mariadb");
    program.args(["--no-defaults", &format!("--user={user}"), &socket, database, "--execute", script]);
    program.finish()
}

/// A client was ended while it made the tables.
#[test]
fn what_is_half_made_is_completed_by_the_next_client() {
    for part in parts_of_the_script() {
        let place = Place::empty();
        run_as_client(&place, &part);
        uses_all_of_it(&client(&place.url));
        assert_eq!(place.session().value::<String>("SELECT version FROM leasehold_layout"), "1", "{part}");
    }
}

/// MySQL lets nobody else replace what an administrator made.
#[test]
fn what_an_administrator_has_half_made_is_completed_or_refused_with_a_remedy() {
    for part in parts_of_the_script() {
        let place = Place::empty();
        place.server.execute_in(place.database(), &part);
        let is_replaced = part.contains("CREATE PROCEDURE") && !part.contains("INSERT INTO leasehold_layout");
        if Product::tested() == Product::Mariadb || !is_replaced {
            uses_all_of_it(&client(&place.url));
        } else {
            let error = refusal(&place.url);
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error:?}");
            assert!(error.remedy().is_some_and(|remedy| remedy.contains("leasehold mysql s")), "{error:?}");
        }
    }
}

#[test]
fn a_script_that_is_run_a_second_time_says_so_and_breaks_nothing() {
    let server = with_roles();
    let script = setup("locks", "fencer").unwrap();
    let told = as_account("root", &session_of(&server, "locks"), "shop", &script);
    assert!(String::from_utf8_lossy(&told.stderr).contains("already exists"), "{told:?}");
    uses_all_of_it(&client(&url_of(&server, "locks")));
}
