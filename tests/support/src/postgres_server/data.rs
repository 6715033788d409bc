//! The data directory of a PostgreSQL server.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::options::PostgresOptions;
use super::programs::{account, program, program_of_server};
use crate::template::{self, copy_tree, done};
use crate::{Finish, must, temp_dir};

/// The data, in the directory of a server.
const DATA: &str = "data";

/// Makes the directory of a server that has no data yet.
pub(super) fn new(options: &PostgresOptions) -> TempDir {
    let directory = temp_dir();
    let data = data_in(&directory);
    copy_tree(template(), &data);
    configure(&data, options);
    account().own(&data);
    account().own(directory.path());
    if let Some(password) = &options.password {
        set_password(&directory, password);
    }
    directory
}

/// Makes the directory of a server that is to follow the one at this URL.
pub(super) fn following(url: &str) -> TempDir {
    let directory = temp_dir();
    account().own(directory.path());
    let mut backup = program_of_server("pg_basebackup");
    backup.current_dir(directory.path()).args(["-D", DATA, "-d", url, "-R", "-X", "stream", "-c", "fast", "--no-sync"]);
    done("pg_basebackup", &backup.finish());
    directory
}

/// The data in the directory of a server.
pub(super) fn data_in(directory: &TempDir) -> PathBuf {
    directory.path().join(DATA)
}

/// Removes what a killed server left behind to say that it runs.
pub(super) fn clear_away(directory: &TempDir) {
    let file = data_in(directory).join("postmaster.pid");
    let told = fs::read_to_string(&file).unwrap_or_default();
    // The kernel keeps the memory by which servers of the same data find each other.
    if let Some(memory) = told.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
        Command::new("ipcrm").args(["-m", memory]).finish();
    }
    fs::remove_file(file).ok();
}

/// New data, made once for each version of PostgreSQL.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let version = program("postgres").arg("--version").finish();
        done("postgres --version", &version);
        template::of_version(&String::from_utf8_lossy(&version.stdout), make_template)
    })
}

fn make_template(place: &Path) {
    let directory = temp_dir();
    account().own(directory.path());
    let mut initdb = program_of_server("initdb");
    initdb.current_dir(directory.path()).args(["-D", DATA, "-U", "postgres", "-A", "trust"]);
    done("initdb", &initdb.args(["--encoding=UTF8", "--no-locale", "--no-sync"]).finish());
    copy_tree(&data_in(&directory), place);
}

fn configure(data: &Path, options: &PostgresOptions) {
    let kind = if options.requires_tls { "hostssl" } else { "host" };
    let method = if options.password.is_some() { "scram-sha-256" } else { "trust" };
    let rule = |database| format!("{kind} {database} all 127.0.0.1/32 {method}\n");
    must("say who may connect", fs::write(data.join("pg_hba.conf"), rule("all") + &rule("replication")));
    if let Some(tls) = &options.tls {
        let key = data.join("server.key");
        must("write the certificate of the server", fs::write(data.join("server.pem"), &tls.certificate));
        must("write the key of the server", fs::write(&key, &tls.key));
        must("protect the key of the server", fs::set_permissions(&key, fs::Permissions::from_mode(0o600)));
    }
}

/// Sets the password before the first client can connect.
fn set_password(directory: &TempDir, password: &str) {
    let sql = directory.path().join("password.sql");
    must("write the password", fs::write(&sql, format!("ALTER ROLE postgres PASSWORD '{password}'\n")));
    let mut postgres = program_of_server("postgres");
    postgres.current_dir(directory.path()).args(["--single", "-D", DATA, "-c", "password_encryption=scram-sha-256"]);
    done("postgres --single", &postgres.arg("postgres").stdin(must("open the password", File::open(&sql))).finish());
}
