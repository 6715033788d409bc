//! How to start a server.

use std::ffi::OsString;
use std::{env, fs};

use crate::{Certificates, Machine, must};

/// The database that every server has.
pub(super) const DATABASE: &str = "test_locks";

/// Which server: the tests run on MariaDB, and on MySQL if `LEASEHOLD_TEST_MYSQL` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// MariaDB, from the system's packages.
    Mariadb,
    /// MySQL itself, which `cargo xtask mysql` unpacks.
    Mysql,
}

impl Product {
    /// The one that this run tests.
    pub fn tested() -> Self {
        if env::var_os("LEASEHOLD_TEST_MYSQL").is_some() { Self::Mysql } else { Self::Mariadb }
    }

    /// What is told to servers, and to what makes their data. Each has a copy of that, so it is small; and many run at once, so
    /// they leave alone what the system has only so much of.
    pub(super) fn innodb(self) -> [&'static str; 3] {
        let log = match self {
            Self::Mariadb => "--innodb-log-file-size=8M",
            Self::Mysql => "--innodb-redo-log-capacity=8M",
        };
        ["--innodb-buffer-pool-size=32M", "--innodb-use-native-aio=OFF", log]
    }

    /// What only this server has to be told.
    pub(super) fn arguments(self, options: &MysqlOptions) -> &'static [&'static str] {
        match self {
            Self::Mariadb => &[],
            Self::Mysql if options.tls.is_some() => &["--mysqlx=OFF", "--secure-file-priv=NULL"],
            // It would make certificates of its own.
            Self::Mysql => &["--mysqlx=OFF", "--secure-file-priv=NULL", "--tls-version="],
        }
    }
}

/// The user of clients.
pub(super) const USER: &str = "locker";

/// How to start a server. By default clients need no password, and every commit is on disk before it is confirmed.
#[derive(Clone, Debug, Default)]
pub struct MysqlOptions {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, OsString)>,
    password: Option<String>,
    pub(super) tls: Option<Tls>,
    requires_tls: bool,
}

/// The texts of a server's certificate, of its key, and of the certificate of its authority.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authority: String,
}

impl MysqlOptions {
    /// Sets variables on the server's command line, such as `lock_wait_timeout=5`.
    #[must_use]
    pub fn arguments(mut self, variables: &[&str]) -> Self {
        self.arguments.extend(variables.iter().map(|variable| format!("--{variable}")));
        self
    }

    /// Runs it on this machine.
    #[must_use]
    pub fn on(mut self, machine: &Machine) -> Self {
        self.environment = machine.environment();
        self
    }

    /// Confirms commits before they are on disk. This is faster, and a killed server still keeps its data.
    #[must_use]
    pub fn volatile(self) -> Self {
        self.arguments(&["innodb_flush_log_at_trx_commit=2", "loose_sync_frm=OFF"])
    }

    /// Requires this password from every client. It may contain only what needs no escape in a URL.
    #[must_use]
    pub fn require_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Offers TLS with these certificates. Clients may still connect without it.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        let read = |file| must("read a certificate", fs::read_to_string(file));
        let [certificate, key] = certificates.of_server().map(read);
        self.tls = Some(Tls { certificate, key, authority: read(certificates.authority()) });
        self
    }

    /// Accepts no client without TLS.
    #[must_use]
    pub fn require_tls(self) -> Self {
        Self { requires_tls: true, ..self }
    }

    /// The arguments that have to be those of the data: MySQL does not start with others.
    pub(super) fn of_new_data(&self) -> Vec<&str> {
        let is_lasting = |argument: &&str| argument.starts_with("--lower_case_table_names");
        match Product::tested() {
            Product::Mariadb => Vec::new(),
            Product::Mysql => self.arguments.iter().map(String::as_str).filter(is_lasting).collect(),
        }
    }

    /// The URL of a database at this port, with the password.
    pub(super) fn url(&self, port: u16, database: &str) -> String {
        let password = self.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        format!("mysql://{USER}{password}@127.0.0.1:{port}/{database}")
    }

    /// The arguments by which the client program logs in at this port, as who uses the URL.
    pub(super) fn login(&self, port: u16, database: &str) -> Vec<String> {
        let password = self.password.as_deref().unwrap_or_default();
        // Newer clients insist on a certificate that they can verify unless they are told otherwise.
        let tls: &[&str] =
            if self.tls.is_some() { &["--ssl", "--disable-ssl-verify-server-cert"] } else { &["--skip-ssl"] };
        let words = ["--protocol=tcp", "--host=127.0.0.1", &format!("--port={port}"), &format!("--user={USER}")];
        let rest = [&format!("--password={password}"), database];
        [&words, tls, &rest].concat().into_iter().map(str::to_owned).collect()
    }

    /// What lets the clients in.
    pub(super) fn sql_for_user(&self) -> String {
        let password =
            self.password.as_ref().map(|password| format!(" IDENTIFIED BY '{password}'")).unwrap_or_default();
        let tls = if self.requires_tls { " REQUIRE SSL" } else { "" };
        format!("CREATE USER {USER}@'%'{password}{tls};\n")
    }
}

/// What creates a database for the clients.
pub(super) fn sql_for_database(name: &str) -> String {
    // These two stand for other characters where rights are granted.
    let pattern = name.replace('_', "\\_").replace('%', "\\%");
    format!("CREATE DATABASE `{name}`;\nGRANT ALL ON `{pattern}`.* TO {USER}@'%';\n")
}
