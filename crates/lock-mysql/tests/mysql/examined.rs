//! What `doctor` says of servers, and servers with a binary log.

use lock_core::StoreConfig;
use lock_core::examine::{Check, Verdict};
use lock_core::{Effect, ErrorKind};
use lock_mysql::{MysqlConfig, setup};
use test_support::{MysqlOptions, MysqlServer};

use crate::support::{Session, claim, client, dialect, low, new_server, take};

fn found(url: &str, check: &str) -> Check {
    let checks = MysqlConfig::from_url(url).unwrap().examine().unwrap();
    checks.into_iter().find(|found| found.check == check).unwrap()
}

#[track_caller]
fn says(url: &str, check: &str, verdict: Verdict, words: &str) {
    let Check { verdict: told, message, remedy, .. } = found(url, check);
    assert!(told == verdict && message.contains(words), "{check}: {told:?} {message}");
    assert_eq!(remedy.is_none(), verdict == Verdict::Ok, "{check}: {message}");
}

#[test]
fn a_server_whose_commits_reach_the_disk_is_in_order() {
    let server = MysqlServer::start();
    let url = server.url();
    says(&url, "reach", Verdict::Ok, &format!("127.0.0.1:{}", server.port()));
    says(&url, "version", Verdict::Ok, dialect().name);
    says(&url, "durability", Verdict::Ok, "reaches the disk");
    says(&url, "binary log", Verdict::Ok, "there is no replica");
    says(&url, "clock", Verdict::Ok, "agrees");
}

#[test]
fn a_server_that_forgets_commits_is_found() {
    let server = new_server();
    says(&server.url(), "durability", Verdict::Finding, "innodb_flush_log_at_trx_commit is 2");
}

#[test]
fn an_account_that_reads_secrets_is_remarked_and_one_that_does_not_is_in_order() {
    let server = new_server();
    says(&server.url(), "rights", Verdict::Ok, "made by the first client");
    take(&client(&server.url()), &claim("report"));
    says(&server.url(), "rights", Verdict::Remark, "secrets");
    server.execute("CREATE DATABASE shop; CREATE USER locks@'%'");
    server.execute_in("shop", &setup("locks", "locks").unwrap());
    let url = format!("mysql://locks@127.0.0.1:{}/shop", server.port());
    says(&url, "rights", Verdict::Ok, "reads no secrets");
}

fn with_binary_log(format: &str) -> MysqlServer {
    let variables = ["log-bin=binary", "server-id=1", "sync-binlog=0", &format!("binlog-format={format}")];
    MysqlServer::start_with(MysqlOptions::default().volatile().arguments(&variables))
}

#[test]
fn a_server_with_a_binary_log_of_rows_serves_and_one_of_statements_is_refused() {
    for format in ["ROW", "MIXED"] {
        let server = with_binary_log(format);
        let token = low(&take(&client(&server.url()), &claim("report")));
        let user = Session::connect(&server.url());
        user.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").unwrap();
        user.begin("report", token).unwrap();
        user.run("COMMIT").unwrap();
        server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        says(&server.url(), "durability", Verdict::Finding, "sync_binlog is not 1");
        server.execute("SET GLOBAL sync_binlog = 1");
        says(&server.url(), "durability", Verdict::Ok, "reaches the disk");
        says(&server.url(), "binary log", Verdict::Remark, "asynchronous");
        server.execute(dialect().switch_semi_sync_on);
        says(&server.url(), "binary log", Verdict::Ok, "semi-synchronous");
    }
    let server = with_binary_log("STATEMENT");
    says(&server.url(), "binary log", Verdict::Finding, "refuses all requests");
    let error = client(&server.url()).acquire(&claim("report"), crate::support::SOON).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("ROW")), "{error:?}");
}
