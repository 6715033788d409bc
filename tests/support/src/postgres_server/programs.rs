//! The programs of PostgreSQL, and who runs them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::Finish;
use crate::account::Account;

/// Where Debian puts the programs of each version, which are not in PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A program that comes with the server.
pub(crate) fn program(name: &str) -> Command {
    Command::new(directory().join(name))
}

/// The same, run by the account of the server: it refuses to run as root.
pub(crate) fn program_of_server(name: &str) -> Command {
    let mut command = program(name);
    account().run(&mut command);
    command
}

/// Who runs the server.
pub(crate) fn account() -> Account {
    static ACCOUNT: OnceLock<Account> = OnceLock::new();
    *ACCOUNT.get_or_init(|| Account::instead_of_root("postgres"))
}

/// Runs SQL at this URL. It gives up connecting after a while, unless the URL says when.
pub(crate) fn run_sql(url: &str, sql: &str) -> Output {
    let mut psql = program("psql");
    psql.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]);
    psql.env("PGCONNECT_TIMEOUT", "20").finish()
}

/// Where the programs are: in PATH, or those of the highest version.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path).chain(newest()).find(|folder| is_complete(folder));
        found.unwrap_or_else(|| panic!("there is no postgres; install it with: apt-get install postgresql"))
    })
}

fn is_complete(folder: &Path) -> bool {
    ["postgres", "initdb", "pg_basebackup", "psql"].iter().all(|name| folder.join(name).is_file())
}

fn newest() -> Option<PathBuf> {
    let folders = fs::read_dir(VERSIONS).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let version = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let installed = folders.map(|folder| folder.join("bin")).filter(|folder| is_complete(folder));
    installed.max_by_key(|folder| version(&folder.parent()?.to_owned()))
}
