//! The programs of MariaDB, and who runs them.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::Finish;
use crate::account::Account;

/// Where Debian puts the server, which is not in everybody's PATH.
const ELSEWHERE: &str = "/usr/sbin";

/// A program that comes with the server. It reads no settings of the machine.
pub(super) fn program(name: &str) -> Command {
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

/// The same, run by the account of the server: it refuses to run as root.
pub(super) fn program_of_server(name: &str) -> Command {
    let mut command = program(name);
    account().run(&mut command);
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
