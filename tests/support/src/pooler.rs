//! A real PgBouncer in front of a PostgreSQL server.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::account::Account;
use crate::redis_server::free_port;
use crate::{PostgresServer, must, temp_dir};

/// Where Debian puts it, which is not in everybody's PATH.
const ELSEWHERE: &str = "/usr/sbin/pgbouncer";
/// How long a pooler may take to answer. Chosen: even a loaded machine starts one in well under a second.
const START_WITHIN: Duration = Duration::from_secs(20);
/// How often to retry on another port, because a free port may be taken before the pooler binds it.
const START_TRIES: u32 = 5;
const LOG: &str = "pgbouncer.log";

/// A running PgBouncer, which gives each transaction any connection to the server. Dropping this kills it.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    directory: TempDir,
    port: u16,
}

impl Pooler {
    /// Starts a pooler for all databases of a server, and waits until it answers. It requires no password.
    pub fn start(server: &PostgresServer) -> Self {
        for _ in 0..START_TRIES {
            let (directory, port) = (temp_dir(), free_port());
            let process = spawn(directory.path(), &configuration(server, port));
            let mut pooler = Self { process, directory, port };
            if pooler.leads_to(server) {
                return pooler;
            }
        }
        panic!("pgbouncer did not start on {START_TRIES} ports in a row");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the database `postgres` through the pooler.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of another database of the server through the pooler.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Waits until the server answers through the pooler; returns false if the pooler exited instead.
    fn leads_to(&mut self, server: &PostgresServer) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if must("look at pgbouncer", self.process.try_wait()).is_some() {
                return false;
            }
            if server.is_at(&self.url()) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let log = fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default();
        panic!("pgbouncer on port {} did not answer within {START_WITHIN:?}:\n{log}", self.port);
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn configuration(server: &PostgresServer, port: u16) -> String {
    let password = server.password().map(|password| format!(" password={password}")).unwrap_or_default();
    format!(
        "[databases]\n* = host=127.0.0.1 port={} user=postgres{password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
         pool_mode = transaction\nserver_reset_query =\nserver_tls_sslmode = prefer\n",
        server.port()
    )
}

fn spawn(directory: &Path, configuration: &str) -> Child {
    let (file, account) = (directory.join("pgbouncer.ini"), Account::instead_of_root("nobody"));
    must("write the configuration of pgbouncer", fs::write(&file, configuration));
    let log = must("make the log of pgbouncer", File::create(directory.join(LOG)));
    account.own(directory);
    let program = if Path::new(ELSEWHERE).is_file() { ELSEWHERE } else { "pgbouncer" };
    let mut command = Command::new(program);
    account.run(&mut command);
    command.arg(&file).current_dir(directory).stdin(Stdio::null());
    command.stderr(must("share the log of pgbouncer", log.try_clone())).stdout(log);
    match command.spawn() {
        Ok(process) => process,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            panic!("there is no pgbouncer; install it with: apt-get install pgbouncer")
        }
        Err(error) => panic!("start pgbouncer: {error}"),
    }
}
