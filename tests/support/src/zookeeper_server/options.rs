//! How to start a server.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use crate::{Certificates, Machine, must};

/// The unit of a server's times. A session lasts at least two of them, and ends on a multiple of it.
const TICK: Duration = Duration::from_millis(500);
/// The longest session that a client can have.
const SESSION_MAX: Duration = Duration::from_secs(120);
/// How long a server may take to connect to a new leader, and to have its data.
const JOINS_WITHIN: Duration = Duration::from_secs(10);
/// How long a leader and a follower may be silent before the other one leaves. Chosen: long enough for a loaded machine.
const CALM: Duration = Duration::from_secs(4);

/// How to start a server. By default every change is on disk before it is confirmed, and clients need no password.
#[derive(Clone, Debug)]
pub struct ZookeeperOptions {
    tick: Duration,
    settings: Vec<String>,
    /// Properties of Java.
    pub(super) properties: Vec<String>,
    pub(super) environment: Vec<(String, OsString)>,
    pub(super) tls: Option<Tls>,
    pub(super) sasl: Option<Sasl>,
}

/// The texts of a server's certificate with its key, and of the certificate of its authority.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) identity: String,
    pub(super) authority: String,
}

/// Who may log in.
#[derive(Clone, Debug)]
pub(super) struct Sasl {
    user: String,
    password: String,
}

impl Default for ZookeeperOptions {
    fn default() -> Self {
        Self {
            tick: TICK,
            settings: Vec::new(),
            properties: Vec::new(),
            environment: Vec::new(),
            tls: None,
            sasl: None,
        }
    }
}

impl ZookeeperOptions {
    /// Sets the unit of the server's times, 500 ms by default. Sessions last from two of them to 120 s, and one of which the
    /// server hears nothing ends up to one of them late.
    #[must_use]
    pub fn tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// Sets lines of the server's configuration, such as `maxSessionTimeout=5000`.
    #[must_use]
    pub fn settings(mut self, settings: &[&str]) -> Self {
        self.settings.extend(settings.iter().map(|&setting| setting.to_owned()));
        self
    }

    /// Confirms changes before they are on disk. This is faster, and a killed server still keeps its data.
    #[must_use]
    pub fn volatile(self) -> Self {
        self.settings(&["forceSync=no"])
    }

    /// Runs it on this machine.
    #[must_use]
    pub fn on(self, machine: &Machine) -> Self {
        Self { environment: machine.environment(), ..self }
    }

    /// Lets a server without a majority answer clients that only read, if they ask for that when they connect.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.properties.push("readonlymode.enabled=true".to_owned());
        self
    }

    /// Opens a second port for TLS with these certificates. The other one stays without.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        let read = |file| must("read a certificate", fs::read_to_string(file));
        let identity = certificates.of_server().map(read).concat();
        self.tls = Some(Tls { identity, authority: read(certificates.authority()) });
        self
    }

    /// Lets this user log in with SASL and the mechanism `DIGEST-MD5`. Clients that do not log in are served too.
    #[must_use]
    pub fn sasl_digest(mut self, user: &str, password: &str) -> Self {
        self.sasl = Some(Sasl { user: user.to_owned(), password: password.to_owned() });
        self
    }

    /// Serves no client that did not log in as [`sasl_digest`](Self::sasl_digest) says.
    #[must_use]
    pub fn require_sasl(self) -> Self {
        self.settings(&["enforce.auth.enabled=true", "enforce.auth.schemes=sasl"])
    }

    /// The lines of the configuration that say nothing of ports, files and other servers.
    pub(super) fn lines(&self) -> Vec<String> {
        let ticks = |time: Duration| time.as_millis().div_ceil(self.tick.as_millis()).max(2);
        let mut lines = vec![
            format!("tickTime={}", self.tick.as_millis()),
            format!("maxSessionTimeout={}", SESSION_MAX.as_millis()),
            format!("initLimit={}", ticks(JOINS_WITHIN)),
            format!("syncLimit={}", ticks(CALM)),
        ];
        if self.sasl.is_some() {
            lines.push("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider".to_owned());
        }
        // Last, because the last line of a name counts.
        lines.extend(self.settings.iter().cloned());
        lines
    }
}

impl Sasl {
    /// What Java reads about those who may log in.
    pub(super) fn jaas(&self) -> String {
        let Self { user, password } = self;
        format!(
            "Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_{user}=\"{password}\"; }};\n"
        )
    }
}
