//! What connecting needs, and what it says when it fails. No error has a secret in it.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_postgres::{PostgresConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Certificates, Finish, PostgresOptions, PostgresServer, temp_dir};

use crate::support::{Place, claim, client, end, is_busy, meanwhile, server, take};

const PASSWORD: &str = "sesame";
/// Tells the test program that it is a client, and of which URL.
const VARIABLE: &str = "LEASEHOLD_POSTGRES_TEST_URL";
/// What the client prints before its result.
const TOLD: &str = "the client says: ";

/// Why a server does not accept a client. On a busy machine, one attempt may have too little time.
#[track_caller]
fn refusal(url: &str) -> BackendError {
    let config = PostgresConfig::from_url(url).unwrap();
    wait_for("the end of connecting", || match blocking::connect(&config) {
        Err(error) if error.to_string().contains("did not accept a connection within") => Err(error),
        outcome => Ok(outcome),
    })
    .expect_err("it is refused")
}

#[track_caller]
fn is_refused(url: &str, kind: ErrorKind, because: &str) {
    let error = refusal(url);
    let texts = [error.to_string(), format!("{error:?}"), format!("{:?}", PostgresConfig::from_url(url).unwrap())];
    assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error:?}");
    assert!(texts[0].contains(because), "{error}");
    assert!(error.remedy().is_some(), "{error:?}");
    for secret in [PASSWORD, "mustard"] {
        assert!(texts.iter().all(|text| !text.contains(secret)), "{texts:?}");
    }
}

fn server_with_password() -> PostgresServer {
    PostgresServer::start_with(PostgresOptions::default().volatile().require_password(PASSWORD))
}

#[test]
fn a_wrong_password_an_unknown_user_and_an_unknown_database_are_refused() {
    let server = server_with_password();
    let url = server.url();
    take(&client(&url), &claim("report"));
    is_refused(&url.replace(PASSWORD, "mustard"), ErrorKind::Denied, "password authentication failed");
    is_refused(&url.replace("postgres:sesame", "nobody:sesame"), ErrorKind::Denied, "authentication failed");
    is_refused(&url.replace("/postgres?", "/nowhere?"), ErrorKind::Config, "nowhere");
    let without = refusal(&url.replace(":sesame", ""));
    assert_eq!((without.kind(), without.effect()), (ErrorKind::Denied, Effect::None), "{without:?}");
}

#[test]
fn a_host_that_is_unknown_or_does_not_answer_is_unreachable() {
    is_refused("postgres://me:mustard@nowhere.invalid/shop?sslmode=disable", ErrorKind::Unreachable, "");
    // A port that nobody listens at.
    is_refused("postgres://me:mustard@127.0.0.1:1/shop", ErrorKind::Unreachable, "");
}

/// What one server says is not hidden behind another one.
#[test]
fn of_several_servers_each_says_why_it_refuses() {
    let server = server_with_password();
    let hosts = format!("127.0.0.1:1,127.0.0.1:{}", server.port());
    let url = server.url().replace(PASSWORD, "mustard").replace(&format!("127.0.0.1:{}", server.port()), &hosts);
    let error = refusal(&url);
    for words in ["127.0.0.1:1: ", "password authentication failed", "; check user and password"] {
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    assert!(!error.to_string().contains("accepts writes"), "{error}");
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

/// What a client says that is started with these variables, and no others about PostgreSQL.
fn client_with(variables: &[(&str, &str)], url: &str) -> String {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "connecting::client_process", "--nocapture"]);
    for unset in ["PGUSER", "PGPASSWORD", "PGPASSFILE"] {
        process.env_remove(unset);
    }
    let output = process.env("HOME", "/nowhere").env(VARIABLE, url).envs(variables.iter().copied()).finish();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().find_map(|line| Some(line.split_once(TOLD)?.1.to_owned())).expect("it says something")
}

/// Plays the client, if this process was started as one.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn client_process() {
    let Ok(url) = env::var(VARIABLE) else { return };
    let config = PostgresConfig::from_url(&url).unwrap();
    match blocking::connect(&config) {
        Ok(_) => println!("{TOLD}connected"),
        Err(error) => println!("{TOLD}{:?} {error}", error.kind()),
    }
}

#[test]
fn user_and_password_come_from_the_environment_or_from_a_file() {
    let (server, directory) = (server_with_password(), temp_dir());
    let bare = server.url().replace("postgres:sesame@", "");
    let with_user = server.url().replace(":sesame", "");
    let file = directory.path().join("passwords");
    fs::write(&file, format!("elsewhere:1:*:*:wrong\n127.0.0.1:{}:postgres:postgres:sesame\n", server.port())).unwrap();
    let path = file.to_str().unwrap();
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o600);
    assert_eq!(client_with(&[("PGUSER", "postgres"), ("PGPASSWORD", PASSWORD)], &bare), "connected");
    assert_eq!(client_with(&[("PGPASSWORD", PASSWORD)], &with_user), "connected");
    assert_eq!(client_with(&[("PGPASSFILE", path)], &with_user), "connected");
    assert_eq!(client_with(&[("PGPASSFILE", path), ("USER", "postgres")], &bare), "connected");
    // What is nearer wins.
    assert_eq!(client_with(&[("PGPASSFILE", path), ("PGPASSWORD", "mustard")], &server.url()), "connected");
    assert!(client_with(&[("PGPASSFILE", path), ("PGPASSWORD", "mustard")], &with_user).starts_with("Denied"));
    // Others may read it, so it is as if it were not there.
    set_mode(0o644);
    let told = client_with(&[("PGPASSFILE", path)], &with_user);
    assert!(told.starts_with("Denied") && !told.contains(PASSWORD), "{told}");
}

#[test]
fn a_password_file_in_the_home_of_the_user_is_found() {
    let (server, home) = (server_with_password(), temp_dir());
    let file = home.path().join(".pgpass");
    fs::write(&file, "*:*:*:*:sesame\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let home = home.path().to_str().unwrap();
    assert_eq!(client_with(&[("HOME", home)], &server.url().replace(":sesame", "")), "connected");
}

fn url_with(server: &PostgresServer, options: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres?{options}", server.port())
}

#[test]
fn tls_is_used_with_an_authority_that_signed_and_refused_with_any_other() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = PostgresServer::start_with(PostgresOptions::default().volatile().tls(&certificates).require_tls());
    let trusting = |certificates: &Certificates| format!("sslrootcert={}", certificates.authority().display());
    let right = url_with(&server, &trusting(&certificates));
    let (first, second) = (client(&right), client(&format!("{right}&sslmode=require")));
    take(&first, &claim("report"));
    is_busy(second.acquire(&claim("report"), crate::support::SOON));
    let encrypted =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'leasehold'";
    assert_eq!(server.psql(encrypted), "t");
    is_refused(&url_with(&server, &trusting(&others)), ErrorKind::Config, "certificate");
    is_refused(&right.replace("127.0.0.1", "localhost"), ErrorKind::Config, "certificate");
    is_refused(&url_with(&server, "sslrootcert=/nowhere/ca.pem"), ErrorKind::Config, "/nowhere/ca.pem");
    // The server accepts nobody without TLS.
    let plain = refusal(&url_with(&server, "sslmode=disable"));
    assert_eq!((plain.kind(), plain.effect()), (ErrorKind::Denied, Effect::None), "{plain:?}");
}

/// The password is bound to the channel then (SCRAM-SHA-256-PLUS).
#[test]
fn a_password_goes_over_tls() {
    let certificates = Certificates::new();
    let options = PostgresOptions::default().volatile().tls(&certificates).require_tls().require_password(PASSWORD);
    let server = PostgresServer::start_with(options);
    let url = format!("{}?sslrootcert={}", server.url(), certificates.authority().display());
    take(&client(&url), &claim("report"));
    is_refused(&url.replace(PASSWORD, "mustard"), ErrorKind::Denied, "password authentication failed");
}

#[test]
fn a_server_without_tls_is_refused_if_tls_is_demanded() {
    let (server, certificates) = (server(), Certificates::new());
    let options = format!("sslmode=require&sslrootcert={}", certificates.authority().display());
    is_refused(&url_with(&server, &options), ErrorKind::Config, "turn ssl on at the server");
    let place = Place::new();
    // On this machine, nobody listens in.
    let url = url_with(&place.server, &format!("schema={}", place.schema));
    take(&client(&url), &claim("report"));
}

#[test]
fn a_server_that_only_reads_is_refused() {
    let options = PostgresOptions::default().volatile().arguments(&["-c", "default_transaction_read_only=on"]);
    let server = PostgresServer::start_with(options);
    is_refused(&server.url(), ErrorKind::Unavailable, "read-only");
}

/// An operator may be at work on the tables.
#[test]
fn a_server_whose_tables_somebody_has_locked_is_refused_after_a_while() {
    let place = Place::new();
    let (session, url) = (place.session(), place.url());
    session.run("BEGIN; LOCK TABLE layout IN ACCESS EXCLUSIVE MODE").unwrap();
    let error = end(meanwhile(move || refusal(&url)));
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error:?}");
    assert!(error.to_string().contains("did not show the tables in time"), "{error}");
    session.run("COMMIT").unwrap();
    take(&place.client(), &claim("report"));
}
