//! What connecting needs, and what it says when it fails. No error has a secret in it.

use std::env;
use std::process::Command;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_mysql::{MysqlConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Fault, Finish, MysqlOptions, MysqlServer, Proxy};

use crate::support::{Place, SOON, claim, client, dialect, is_busy, server, take};

const PASSWORD: &str = "sesame";
/// Tells the test program that it is a client, and of which URL.
const VARIABLE: &str = "LEASEHOLD_MYSQL_TEST_URL";
/// What the client prints before its result.
const TOLD: &str = "the client says: ";

/// Why a server does not accept a client. On a busy machine, one attempt may have too little time.
#[track_caller]
fn refusal(url: &str) -> BackendError {
    let config = MysqlConfig::from_url(url).unwrap();
    wait_for("the end of connecting", || match blocking::connect(&config) {
        Err(error) if error.to_string().contains("did not accept a connection within") => Err(error),
        outcome => Ok(outcome),
    })
    .expect_err("it is refused")
}

#[track_caller]
fn is_refused(url: &str, kind: ErrorKind, because: &[&str]) {
    let error = refusal(url);
    let texts = [error.to_string(), format!("{error:?}"), format!("{:?}", MysqlConfig::from_url(url).unwrap())];
    assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error:?}");
    assert!(because.iter().all(|words| texts[0].contains(words)), "{because:?}: {error}");
    assert!(error.remedy().is_some(), "{error:?}");
    for secret in [PASSWORD, "mustard"] {
        assert!(texts.iter().all(|text| !text.contains(secret)), "{texts:?}");
    }
}

fn server_with_password() -> MysqlServer {
    MysqlServer::start_with(MysqlOptions::default().volatile().require_password(PASSWORD))
}

fn address_of(server: &MysqlServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

#[test]
fn a_wrong_password_an_unknown_user_and_an_unknown_database_are_refused() {
    let server = server_with_password();
    let (url, address) = (server.url(), address_of(&server));
    take(&client(&url), &claim("report"));
    let denied = [address.as_str(), "Access denied", "check user and password"];
    is_refused(&url.replace(PASSWORD, "mustard"), ErrorKind::Denied, &denied);
    for user in ["nobody:", "somebody:", "anybody:"] {
        let unknown = [address.as_str(), dialect().unknown_user, "check user and password"];
        is_refused(&url.replace("locker:", user), ErrorKind::Denied, &unknown);
    }
    is_refused(&url.replace(":sesame", ""), ErrorKind::Denied, &denied);
    // The error for an account that may do everything says that it is not there.
    server.execute("GRANT ALL ON *.* TO locker@'%'");
    is_refused(
        &url.replace("/test_locks", "/nowhere"),
        ErrorKind::Config,
        &[&address, "nowhere", "create the database"],
    );
}

#[test]
fn a_database_of_others_is_refused() {
    let server = server_with_password();
    server.execute("CREATE DATABASE theirs");
    let url = server.url().replace("/test_locks", "/theirs");
    is_refused(&url, ErrorKind::Denied, &[&address_of(&server), "theirs", "rights"]);
}

#[test]
fn an_account_that_is_locked_or_needs_a_new_password_is_refused() {
    let server = server_with_password();
    let (url, address) = (server.url(), address_of(&server));
    server.execute("ALTER USER locker@'%' ACCOUNT LOCK");
    is_refused(&url, ErrorKind::Denied, &[&address, "unlock the account"]);
    server.execute("ALTER USER locker@'%' ACCOUNT UNLOCK; ALTER USER locker@'%' PASSWORD EXPIRE");
    is_refused(&url, ErrorKind::Denied, &[&address, "a new password"]);
}

#[test]
fn a_server_that_is_one_of_several_primaries_is_refused() {
    let (variables, told) = dialect().several_primaries;
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().arguments(variables));
    is_refused(&server.url(), ErrorKind::Config, &[&address_of(&server), told]);
}

#[test]
fn a_host_that_is_unknown_or_does_not_answer_is_unreachable() {
    let unknown = "mysql://me:mustard@nowhere.invalid/shop?sslmode=disable";
    is_refused(unknown, ErrorKind::Unreachable, &["nowhere.invalid", "check that the server is running"]);
    // A port that nobody listens at.
    let silent = "mysql://me:mustard@127.0.0.1:1/shop";
    is_refused(silent, ErrorKind::Unreachable, &["127.0.0.1:1", "check that the server is running"]);
}

#[test]
fn a_server_that_accepts_connections_and_says_nothing_is_unreachable() {
    let server = server();
    let way = Proxy::start(server.port());
    way.set(Fault::Hold);
    let url = server.url_at(way.port());
    let config = MysqlConfig::from_url(&url).unwrap();
    let error = blocking::connect(&config).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{error:?}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{}", way.port())), "{error}");
}

#[test]
fn of_several_servers_the_first_that_answers_is_used_and_each_says_why_it_refuses() {
    let server = server_with_password();
    let address = address_of(&server);
    let several = server.url().replace(&address, &format!("127.0.0.1:1,{address}"));
    let [one, other] = [client(&server.url()), client(&several)];
    take(&one, &claim("report"));
    is_busy(other.acquire(&claim("report"), SOON));
    let words =
        ["127.0.0.1:1: ", &address, "Access denied", "check that the server is running", "check user and password"];
    is_refused(&several.replace(PASSWORD, "mustard"), ErrorKind::Denied, &words);
}

#[test]
fn a_server_that_only_reads_is_refused_and_the_next_one_is_used() {
    let [reads, writes] = [server_with_password(), server_with_password()];
    for variable in dialect().read_only {
        reads.execute(&format!("SET GLOBAL {variable} = ON"));
        let remedy = "one of them accepts writes";
        is_refused(&reads.url(), ErrorKind::Unavailable, &[&address_of(&reads), "read-only", remedy]);
    }
    let several = reads.url().replace(&address_of(&reads), &format!("{},{}", address_of(&reads), address_of(&writes)));
    take(&client(&several), &claim("report"));
    is_busy(client(&writes.url()).acquire(&claim("report"), SOON));
}

/// As after a fail-over: the connections are those of before.
#[test]
fn a_server_that_begins_to_only_read_refuses_requests() {
    let server = crate::support::new_server();
    let client = client(&server.url());
    take(&client, &claim("report"));
    for variable in dialect().read_only {
        server.execute(&format!("SET GLOBAL {variable} = ON"));
        let error = client.acquire(&claim("other"), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("name the primary")), "{error:?}");
    }
    server.execute("SET GLOBAL read_only = OFF");
    take(&client, &claim("other"));
}

#[test]
fn no_description_of_a_client_has_a_secret() {
    let server = server_with_password();
    let client = client(&server.url());
    let location = format!("{:?}", lock_core::Backend::locate(&*client, &"report".parse().unwrap()));
    for text in [format!("{client:?}"), location] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

/// What a client says that is started with these variables, and no others about MySQL.
fn client_with(variables: &[(&str, &str)], url: &str) -> String {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "connecting::client_process", "--nocapture"]);
    process.env_remove("USER").env_remove("MYSQL_PWD");
    let output = process.env(VARIABLE, url).envs(variables.iter().copied()).finish();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().find_map(|line| Some(line.split_once(TOLD)?.1.to_owned())).expect("it says something")
}

/// Plays the client, if this process was started as one.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn client_process() {
    let Ok(url) = env::var(VARIABLE) else { return };
    let config = MysqlConfig::from_url(&url).unwrap();
    match wait_for("the end of connecting", || match blocking::connect(&config) {
        Err(error) if error.to_string().contains("within") => Err(error),
        outcome => Ok(outcome),
    }) {
        Ok(_) => println!("{TOLD}connected"),
        Err(error) => println!("{TOLD}{:?} {error}", error.kind()),
    }
}

#[test]
fn user_and_password_come_from_the_environment() {
    let server = server_with_password();
    let (bare, with_user) = (server.url().replace("locker:sesame@", ""), server.url().replace(":sesame", ""));
    assert_eq!(client_with(&[("USER", "locker"), ("MYSQL_PWD", PASSWORD)], &bare), "connected");
    assert_eq!(client_with(&[("USER", "nobody"), ("MYSQL_PWD", PASSWORD)], &with_user), "connected");
    // What is nearer wins.
    assert_eq!(client_with(&[("MYSQL_PWD", "mustard")], &server.url()), "connected");
    let told = client_with(&[("MYSQL_PWD", "mustard")], &with_user);
    assert!(told.starts_with("Denied") && !told.contains("mustard"), "{told}");
}

#[test]
fn passwords_and_names_may_have_any_characters() {
    let server = crate::support::new_server();
    server
        .execute("CREATE USER `it's me`@'%' IDENTIFIED BY 'p@ss/w:rd?#%'; GRANT ALL ON test_locks.* TO `it's me`@'%'");
    let url = server.url().replace("locker@", "it%27s%20me:p%40ss%2Fw%3Ard%3F%23%25@");
    take(&client(&url), &claim("report"));
    let place = Place::new();
    place.server.execute("CREATE DATABASE `o'clock ``n shop`; GRANT ALL ON `o'clock ``n shop`.* TO locker@'%'");
    let url = place.url.replace(place.database(), "o%27clock%20%60n%20shop");
    take(&client(&url), &claim("report"));
}
