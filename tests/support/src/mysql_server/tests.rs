use std::env;
use std::path::Path;
use std::process::{Command, Output};

use super::*;
use crate::bounds::wait_for;
use crate::{AfterDrop, Certificates, Fault, Finish, Proxy};

/// Where the test program, run again, tells where its server is before it ends.
const TOLD: &str = "TEST_SUPPORT_MARIA_SERVER";

fn with_a_row(options: MysqlOptions) -> MysqlServer {
    let server = MysqlServer::start_with(options);
    server.execute("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('one')");
    server
}

/// Runs SQL as who uses the URL, with more arguments of the client.
fn as_client(server: &MysqlServer, port: u16, more: &[&str], sql: &str) -> Output {
    let login = server.options.login(port, DATABASE);
    programs::run_sql(&[login, more.iter().map(|&word| word.to_owned()).collect()].concat(), sql)
}

fn answers(server: &MysqlServer, port: u16, more: &[&str]) -> bool {
    as_client(server, port, more, "SELECT 1").status.success()
}

/// Whether a process works in a directory, which a server does.
fn is_used(directory: &Path) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.any(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
}

#[test]
fn a_mysql_server_keeps_or_loses_its_data_as_asked() {
    let mut server = with_a_row(MysqlOptions::default());
    let (port, first) = (server.port(), server.pid());
    server.restart_with_data();
    assert_eq!(server.execute("SELECT word FROM kept"), "one");
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), first);
    server.restart_empty();
    assert_eq!(server.execute("SHOW TABLES"), "");
    assert_eq!(server.port(), port);
}

#[test]
fn a_mysql_server_has_the_variables_that_it_is_started_with() {
    let flush = "SELECT @@innodb_flush_log_at_trx_commit";
    assert_eq!(MysqlServer::start().execute(flush), "1");
    let mut server = with_a_row(MysqlOptions::default().volatile().arguments(&["innodb_lock_wait_timeout=3"]));
    server.restart_with_data();
    assert_eq!(server.execute("SELECT @@innodb_lock_wait_timeout, word FROM kept"), "3\tone");
    assert_eq!(server.execute(flush), "2");
}

#[test]
fn databases_of_a_mysql_server_are_apart() {
    let server = MysqlServer::start();
    let urls = [server.new_database(), server.new_database(), server.database("other")];
    assert_eq!(urls[2], format!("mysql://locker@127.0.0.1:{}/other", server.port()));
    assert_ne!(urls[0], urls[1]);
    let made =
        as_client(&server, server.port(), &[], "CREATE TABLE other.here (x int); CREATE TABLE other.there (x int)");
    assert!(made.status.success(), "{made:?}");
    assert_eq!(server.execute_in("other", "SHOW TABLES"), "here\nthere");
    assert_eq!(server.execute("SHOW TABLES"), "");
    assert!(!as_client(&server, server.port(), &[], "SELECT 1 FROM mysql.user").status.success());
}

#[test]
#[should_panic(expected = "Table 'test_locks.nowhere' doesn't exist")]
fn sql_that_fails_on_a_mysql_server_says_why() {
    MysqlServer::start().execute("SELECT 1 FROM nowhere");
}

#[test]
fn a_mysql_server_requires_a_password_if_asked() {
    let mut server = MysqlServer::start_with(MysqlOptions::default().require_password("sesame"));
    server.restart_empty();
    assert_eq!(server.url(), format!("mysql://locker:sesame@127.0.0.1:{}/test_locks", server.port()));
    assert!(!answers(&server, server.port(), &["--password=mustard"]));
}

#[test]
fn a_mysql_server_offers_or_requires_tls_as_asked() {
    let certificates = Certificates::new();
    let authority = format!("--ssl-ca={}", certificates.authority().display());
    let verified = ["--ssl-verify-server-cert", &authority];
    let server = MysqlServer::start_with(MysqlOptions::default().tls(&certificates));
    assert!(answers(&server, server.port(), &verified));
    assert!(answers(&server, server.port(), &["--skip-ssl"]));
    let cipher = as_client(&server, server.port(), &verified, "SHOW STATUS LIKE 'Ssl_cipher'");
    assert!(String::from_utf8_lossy(&cipher.stdout).contains("TLS_"), "{cipher:?}");

    let server = MysqlServer::start_with(MysqlOptions::default().tls(&certificates).require_tls());
    assert!(answers(&server, server.port(), &verified));
    assert!(!answers(&server, server.port(), &["--skip-ssl"]));
}

#[test]
fn a_suspended_mysql_server_answers_when_it_is_resumed() {
    let server = MysqlServer::start();
    server.stop();
    assert!(!answers(&server, server.port(), &["--connect-timeout=1"]));
    server.resume();
    assert_eq!(server.execute("SELECT 1"), "1");
}

#[test]
fn a_proxy_leads_to_a_mysql_server() {
    let server = MysqlServer::start();
    let proxy = Proxy::start(server.port());
    assert!(server.is_at(proxy.port()));
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    assert!(!server.is_at(proxy.port()));
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_a_mysql_server() {
    let mut server = MysqlServer::start();
    let directory = server.directory.path().to_owned();
    assert!(is_used(&directory));
    server.kill();
    assert!(!is_used(&directory));
    server.kill();
    server.restart_with_data();
    server.stop();
    drop(server);
    assert!(!is_used(&directory));
    assert!(!directory.exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_mysql_server_ends_with_the_process_that_started_it() {
    let folder = crate::temp_dir();
    let told = folder.path().join("told");
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "mysql_server::tests::a_process_that_starts_a_mysql_server_is_killed"]);
    let ended = again.env(TOLD, &told).finish();
    assert!(!ended.status.success(), "{ended:?}");
    let directory = fs::read_to_string(&told).unwrap();
    wait_for("the server ends", || !is_used(Path::new(&directory)));
    wait_for("its directory is removed", || !Path::new(&directory).exists());
}

/// Run again by the test above.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_starts_a_mysql_server_is_killed() {
    let Some(told) = env::var_os(TOLD) else { return };
    let server = MysqlServer::start();
    assert!(is_used(server.directory.path()));
    fs::write(told, server.directory.path().to_str().unwrap()).unwrap();
    crate::signals::kill_now(std::process::id());
}
