//! What a `zookeeper:` URL says.

mod security;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, Ttl, UrlForm, UrlHost, parse_duration};
use serde::Deserialize;
use zookeeper_client::{Acl, Acls, Permission};

use self::security::{Access, access, has_tls, login, tls_files};
pub(crate) use self::security::{Login, TlsFiles};

const FORM: UrlForm = UrlForm {
    what: "zookeeper URL",
    host: "a server",
    remedy: "write zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT",
};
const OPTIONS: &[&str] = &["prefix", "op_timeout", "session", "tick", "acl", "auth"];
/// Those of URLs with TLS.
const TLS_OPTIONS: &[&str] = &["sslrootcert", "sslcert", "sslkey"];

/// The port of clients.
const PORT: u16 = 2181;
/// The port of clients with TLS. Chosen: servers have no default; this is the one of their documentation.
const TLS_PORT: u16 = 2281;

/// Which ZooKeeper to use, and how. `Debug` hides user and password.
///
/// Read from a URL, or from a table with `url` and any of the URL's options.
///
/// ```
/// # use lock_zookeeper::ZookeeperConfig;
/// let config = ZookeeperConfig::from_url("zookeeper://app:sesame@zk1,zk2:2182/shop?session=10s")?;
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "table::Table", description = "A ZooKeeper ensemble."))]
#[serde(try_from = "table::Table")]
#[non_exhaustive]
pub struct ZookeeperConfig {
    url: StoreUrl,
    prefix: Prefix,
    pub(crate) op_timeout: Option<Duration>,
    session: Ttl,
    tick: Duration,
    access: Access,
    login: Option<Login>,
    tls: Option<TlsFiles>,
}

impl ZookeeperConfig {
    /// Reads `zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT`, or `zookeeper+tls:` for the servers' ports for TLS.
    ///
    /// Options behind the question mark:
    /// - `prefix`, `op_timeout`
    /// - `session`: how long leases last, 30 s by default
    /// - `tick`: the `tickTime` of the servers, 3 s by default
    /// - `auth`: how user and password are used. `digest` means the scheme of that name and is the default, `sasl` means SASL with the mechanism
    ///   `DIGEST-MD5`, which needs ZooKeeper 3.7. Servers that serve nobody without SASL end the session of a client that connects again.
    /// - `acl`: who may use the nodes that this client creates. `creator` means clients with the same login, and is the default if the URL has a
    ///   login. `open` means everybody, for instance Java services with another login. Clients with different logins need a chroot each, or `open`.
    /// - `sslrootcert`: a PEM file with the certificates of the authorities to trust. TLS needs it.
    /// - `sslcert`, `sslkey`: with TLS, PEM files with the client's certificate and its key. Servers ask for a certificate unless configured otherwise.
    ///
    /// No server may have a `maxSessionTimeout` below the session that another one has agreed to: a client that moves to such a server is not
    /// notified that its session is shorter there, and relies on its leases for too long. `examine` compares them.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host, a chroot that is no path, and options that are unknown,
    /// given twice or not valid; for TLS if this build does not include it.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::of(StoreUrl::read(url, FORM)?)
    }

    fn of(url: StoreUrl) -> Result<Self, Invalid> {
        let has_tls = has_tls(&url)?;
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        if !has_tls && TLS_OPTIONS.iter().any(|option| url.option(option).is_some()) {
            return Err(url.refuse("it has options for TLS, and asks for none", "write zookeeper+tls://"));
        }
        let allowed = if has_tls { [OPTIONS, TLS_OPTIONS].concat() } else { OPTIONS.to_vec() };
        url.check_options(&[], &allowed)?;
        check_chroot(&url)?;
        let duration = |key: &'static str| url.option(key).map(|text| parse_duration(key, text)).transpose();
        let (op_timeout, session, tick) = (duration("op_timeout")?, duration("session")?, duration("tick")?);
        let (session, tick) = check_times(&url, session, tick)?;
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(op_timeout)?,
            session,
            tick,
            access: access(&url)?,
            login: login(&url)?,
            tls: has_tls.then(|| tls_files(&url)).transpose()?,
            url,
        })
    }

    /// The servers, each with its port.
    pub(crate) fn servers(&self) -> Vec<String> {
        let port = if self.tls.is_some() { TLS_PORT } else { PORT };
        let server = |host: &UrlHost| UrlHost { port: host.port.or(Some(port)), ..host.clone() }.to_string();
        self.url.hosts().iter().map(server).collect()
    }

    /// The node below which everything is kept; empty if that is the root.
    pub(crate) fn chroot(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// The files for TLS; `None` if connections are not encrypted.
    pub(crate) const fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    pub(crate) const fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The session timeout to ask for, which every lease lasts.
    pub(crate) const fn session(&self) -> Ttl {
        self.session
    }

    /// How often the leader pings its followers at least.
    pub(crate) const fn tick(&self) -> Duration {
        self.tick
    }

    /// Whether everybody may use the nodes that a client creates.
    pub(crate) fn is_open(&self) -> bool {
        self.access == Access::Open
    }

    /// The ACLs of the nodes that a client creates.
    pub(crate) const fn acls(&self) -> Acls<'static> {
        match self.access {
            Access::Creator => Acls::creator_all(),
            Access::Open => Acls::anyone_all(),
        }
    }

    /// Those of nodes that every client has to read: where the tokens begin, and who ended a lease.
    pub(crate) fn readable(&self) -> Acls<'static> {
        match self.access {
            Access::Creator => Acls::new(&READ_BY_ALL),
            Access::Open => Acls::anyone_all(),
        }
    }

    /// The servers and the chroot, without secrets.
    pub(crate) fn place(&self) -> String {
        let hosts: Vec<_> = self.url.hosts().iter().map(ToString::to_string).collect();
        format!("{}://{}{}", self.url.scheme(), hosts.join(","), self.chroot())
    }
}

static READ_BY_ALL: [Acl; 2] =
    [Acl::new_const(Permission::ALL, "auth", ""), Acl::new_const(Permission::READ, "world", "anyone")];

/// # Source
/// ZooKeeper: the servers' default. Its example configuration says 2 s.
const TICK_DEFAULT: Duration = Duration::from_secs(3);

/// How long sessions last, and the tick.
fn check_times(url: &StoreUrl, session: Option<Duration>, tick: Option<Duration>) -> Result<(Ttl, Duration), Invalid> {
    let session = session.map_or(Ok(Ttl::DEFAULT), Ttl::new)?;
    if session.get() > SESSION_MAX {
        return Err(url.refuse("its session is too long", "write at most session=24d"));
    }
    let tick = tick.unwrap_or(TICK_DEFAULT);
    if tick.is_zero() || tick > SESSION_MAX {
        return Err(url.refuse("its tick is zero or far too long", "write tick=TIME, with the tickTime of the servers"));
    }
    Ok((session, tick))
}

/// What the protocol can say, in milliseconds.
const SESSION_MAX: Duration = Duration::from_millis(i32::MAX as u64);

fn check_chroot(url: &StoreUrl) -> Result<(), Invalid> {
    let chroot = url.path().trim_end_matches('/');
    let is_odd = |segment: &str| ["", ".", ".."].contains(&segment) || segment.contains(char::is_control);
    if chroot.split('/').skip(1).any(is_odd) {
        return Err(
            url.refuse("its chroot is not a path of ZooKeeper", "write /NAME/NAME, without . or .. and empty names")
        );
    }
    Ok(())
}
