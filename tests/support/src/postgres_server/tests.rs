use std::path::{Path, PathBuf};

use super::*;
use crate::bounds::{wait_at_most, wait_for};
use crate::{AfterDrop, Certificates, Fault, Pooler, Proxy};

fn with_a_row(options: PostgresOptions) -> PostgresServer {
    let server = PostgresServer::start_with(options);
    server.psql("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('one')");
    server
}

fn answers(url: &str) -> bool {
    programs::run_sql(url, "SELECT 1").status.success()
}

/// All processes that work in a directory, which those of a server do.
fn processes_in(directory: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let works_there =
        |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    processes.filter(works_there).collect()
}

#[test]
fn a_server_keeps_or_loses_its_data_as_asked() {
    let mut server = with_a_row(PostgresOptions::default());
    let (port, first) = (server.port(), server.pid());
    server.restart_with_data();
    assert_eq!(server.psql("SELECT word FROM kept"), "one");
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), first);
    server.restart_empty();
    assert_eq!(server.psql("SELECT to_regclass('kept') IS NULL"), "t");
    assert_eq!(server.port(), port);
}

#[test]
fn a_server_loses_nothing_when_killed_although_it_does_not_wait_for_the_disk() {
    let mut server = with_a_row(PostgresOptions::default().volatile());
    assert_eq!(server.psql("SHOW fsync"), "off");
    server.restart_with_data();
    assert_eq!(server.psql("SELECT word FROM kept"), "one");
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_a_server() {
    let mut server = PostgresServer::start();
    let directory = server.directory.path().to_owned();
    assert!(processes_in(&directory).len() > 1);
    server.kill();
    assert_eq!(processes_in(&directory).len(), 0);
    assert!(!answers(&server.url()));
    server.kill();
    server.restart_with_data();
    server.stop();
    drop(server);
    assert_eq!(processes_in(&directory).len(), 0);
    assert!(!directory.exists());
}

#[test]
fn databases_of_a_server_are_apart() {
    let server = PostgresServer::start();
    let url = server.database("apart");
    server.psql_in("apart", "CREATE TABLE here ()");
    assert_eq!(server.psql("SELECT to_regclass('here') IS NULL"), "t");
    assert!(programs::run_sql(&url, "TABLE here").status.success());
}

#[test]
#[should_panic(expected = "relation \"nowhere\" does not exist")]
fn sql_that_fails_says_why() {
    PostgresServer::start().psql("TABLE nowhere");
}

#[test]
fn a_server_requires_a_password_if_asked() {
    let mut server = with_a_row(PostgresOptions::default().require_password("sesame"));
    let refused = |server: &PostgresServer| {
        let wrong = programs::run_sql(&server.url().replace("sesame", "mustard"), "SELECT 1");
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(said.contains("password authentication failed"), "{said}");
    };
    refused(&server);
    assert!(answers(&Pooler::start(&server).url()));
    server.restart_empty();
    refused(&server);
    assert!(
        server.psql("SELECT rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL").starts_with("SCRAM-SHA-256$")
    );
    assert_eq!(server.standby().psql("SELECT pg_is_in_recovery()"), "t");
}

#[test]
fn a_server_offers_or_requires_tls_as_asked() {
    let (certificates, tls) = (Certificates::new(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    let server = PostgresServer::start_with(PostgresOptions::default().tls(&certificates));
    assert_eq!(server.psql(tls), "t");
    let (verified, plain) = (verified_by(&certificates, &server), format!("{}?sslmode=disable", server.url()));
    assert!(answers(&verified));
    assert!(answers(&plain));

    let server = PostgresServer::start_with(PostgresOptions::default().tls(&certificates).require_tls());
    assert!(answers(&verified_by(&certificates, &server)));
    assert!(!answers(&format!("{}?sslmode=disable", server.url())));
    assert_eq!(server.standby().psql(tls), "t");
}

fn verified_by(certificates: &Certificates, server: &PostgresServer) -> String {
    format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), certificates.authority().display())
}

#[test]
fn a_suspended_server_answers_when_it_is_resumed() {
    let server = PostgresServer::start();
    server.stop();
    assert!(!answers(&format!("{}&connect_timeout=2", server.url())));
    server.resume();
    assert_eq!(server.psql("SELECT 1"), "1");
}

#[test]
fn a_proxy_leads_to_a_server() {
    let server = PostgresServer::start();
    let proxy = Proxy::start(server.port());
    assert!(answers(&server.url_at(proxy.port())));
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    assert!(!answers(&server.url_at(proxy.port())));
}

#[test]
fn a_standby_replays_and_is_promoted() {
    let mut server = with_a_row(PostgresOptions::default());
    let mut standby = server.standby();
    server.psql("INSERT INTO kept VALUES ('two')");
    wait_for("the standby replays", || standby.psql("SELECT count(*) FROM kept") == "2");
    standby.restart_with_data();
    server.psql("INSERT INTO kept VALUES ('three')");
    wait_for("the standby replays again", || standby.psql("SELECT count(*) FROM kept") == "3");
    server.kill();
    standby.promote();
    standby.psql("INSERT INTO kept VALUES ('four')");
    assert_eq!(standby.psql("SELECT count(*) FROM kept"), "4");
}

#[test]
fn a_pooler_gives_each_transaction_any_connection() {
    let server = PostgresServer::start();
    let pooler = Pooler::start(&server);
    server.database("apart");
    server.psql_in("apart", "CREATE TABLE here ()");
    let set = programs::run_sql(&pooler.url_of("apart"), "TABLE here; SET application_name = 'left behind'");
    assert!(set.status.success(), "{set:?}");
    let kept = programs::run_sql(&pooler.url_of("apart"), "SHOW server_version");
    assert!(kept.status.success(), "{kept:?}");
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'apart'";
    wait_at_most(START_WITHIN, "one connection", || server.psql(connections) == "1");
}
