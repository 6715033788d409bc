//! The programs of MariaDB and MySQL, and who runs them.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::options::Product;
use crate::Finish;
use crate::account::Account;

/// Where `cargo xtask mysql` unpacks MySQL.
const MYSQL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/mysql/mysqld");
/// Where Debian puts the server, which is not in everybody's PATH.
const ELSEWHERE: &str = "/usr/sbin";

/// A program of MariaDB. It reads no settings of the machine.
fn program(name: &str) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from(ELSEWHERE)]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    let program = found.unwrap_or_else(|| {
        panic!("there is no {name}; install it with: apt-get install mariadb-server-core mariadb-client-core")
    });
    let mut command = Command::new(program);
    command.arg("--no-defaults");
    command
}

/// The server.
pub(super) fn server(product: Product) -> Command {
    let mut command = match product {
        Product::Mariadb => program("mariadbd"),
        Product::Mysql => {
            assert!(Path::new(MYSQL).is_file(), "there is no {MYSQL}; run the tests on MySQL with: cargo xtask mysql");
            Command::new(MYSQL)
        }
    };
    account().run(&mut command);
    command
}

/// What makes the data of a new server. Its administrator needs no password.
pub(super) fn installing(product: Product) -> Command {
    let mut command = match product {
        Product::Mariadb => program("mariadb-install-db"),
        Product::Mysql => return with(server(product), &["--initialize-insecure", "--secure-file-priv=NULL"]),
    };
    account().run(&mut command);
    with(command, &["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"])
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}

/// Who runs the server. The packages that bring only programs make no account for it.
pub(super) fn account() -> Account {
    static ACCOUNT: OnceLock<Account> = OnceLock::new();
    *ACCOUNT.get_or_init(|| Account::instead_of_root("nobody"))
}

/// Runs SQL with these arguments of the client. It gives up connecting after a while.
pub(super) fn run_sql(login: &[impl AsRef<OsStr>], sql: &str) -> Output {
    let mut client = program("mariadb");
    client.args(["--batch", "--raw", "--skip-column-names", "--connect-timeout=20"]);
    client.args(login).args(["--execute", sql]).finish()
}
