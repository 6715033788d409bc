//! How to start a PostgreSQL server.

use std::ffi::OsString;
use std::fs;

use crate::{Certificates, Machine, must};

/// How to start a server. By default every client is trusted, and every commit is on disk before it is confirmed.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, OsString)>,
    pub(super) password: Option<String>,
    pub(super) tls: Option<Tls>,
    pub(super) requires_tls: bool,
}

/// The texts of a server's certificate and of its key.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl PostgresOptions {
    /// Adds arguments to the server's command line, such as `-c lock_timeout=1s`.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
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
        self.arguments(&["-c", "fsync=off", "-c", "full_page_writes=off"])
    }

    /// Requires this password from every client (SCRAM-SHA-256). It may contain only what needs no escape in a URL.
    #[must_use]
    pub fn require_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Offers TLS with these certificates. Clients may still connect without it.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        let [certificate, key] =
            certificates.of_server().map(|file| must("read a certificate", fs::read_to_string(file)));
        self.tls = Some(Tls { certificate, key });
        self
    }

    /// Accepts no client without TLS.
    #[must_use]
    pub fn require_tls(self) -> Self {
        Self { requires_tls: true, ..self }
    }

    /// The URL of a database at this port, with the password.
    pub(super) fn url(&self, port: u16, database: &str) -> String {
        let password = self.password.as_ref().map(|password| format!(":{password}")).unwrap_or_default();
        let query = if self.tls.is_some() { "" } else { "?sslmode=disable" };
        format!("postgres://postgres{password}@127.0.0.1:{port}/{database}{query}")
    }
}
