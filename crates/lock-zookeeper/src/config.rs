//! What a `zookeeper:` URL says.

use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, Ttl, UrlForm, UrlHost, parse_duration};
use zookeeper_client::{Acl, Acls, Permission};

const FORM: UrlForm = UrlForm {
    what: "zookeeper URL",
    host: "a server",
    remedy: "write zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT",
};
const OPTIONS: &[&str] = &["prefix", "op_timeout", "session", "tick", "acl"];

/// The port of clients.
const PORT: u16 = 2181;

/// Which ZooKeeper to use, and how. `Debug` hides user and password.
///
/// ```
/// # use lock_zookeeper::ZookeeperConfig;
/// let config = ZookeeperConfig::from_url("zookeeper://app:sesame@zk1,zk2:2182/shop?session=10s")?;
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ZookeeperConfig {
    url: StoreUrl,
    prefix: Prefix,
    pub(crate) op_timeout: Option<Duration>,
    session: Ttl,
    tick: Duration,
    access: Access,
}

/// Who may do what with the nodes that a client creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Only clients with the same login.
    Creator,
    /// Anybody who can connect.
    Open,
}

impl ZookeeperConfig {
    /// Reads `zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT`. User and password are those of the digest scheme.
    ///
    /// Options behind the question mark:
    /// - `prefix`, `op_timeout`
    /// - `session`: how long leases last, 30 s by default
    /// - `tick`: the `tickTime` of the servers, 3 s by default
    /// - `acl`: who may use the nodes that this client creates. `creator` means clients with the same login, and is the default if the URL has a
    ///   login. `open` means everybody, for instance Java services with another login. Clients with different logins need a chroot each, or `open`.
    ///
    /// No server may have a `maxSessionTimeout` below the session that another one has agreed to: a client that moves to such a server is not
    /// told that its session is shorter there, and relies on its leases for too long.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host, a chroot that is no path, and options that are unknown,
    /// given twice or not valid.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        let url = StoreUrl::read(url, FORM)?;
        if url.scheme() != "zookeeper" {
            return Err(url.refuse_form("its scheme is not zookeeper"));
        }
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        if url.user().is_none() && url.secret().is_some() {
            return Err(url.refuse("it has a password and no user", "write zookeeper://USER:PASSWORD@HOST"));
        }
        url.check_options(&[], OPTIONS)?;
        check_chroot(&url)?;
        let duration = |key: &'static str| url.option(key).map(|text| parse_duration(key, text)).transpose();
        let (op_timeout, session, tick) = (duration("op_timeout")?, duration("session")?, duration("tick")?);
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(op_timeout)?,
            session: session.map_or(Ok(Ttl::DEFAULT), Ttl::new)?,
            tick: tick.unwrap_or(TICK_DEFAULT),
            access: access(&url)?,
            url,
        })
    }

    /// The servers as the client reads them.
    pub(crate) fn servers(&self) -> String {
        let server = |host: &UrlHost| UrlHost { port: host.port.or(Some(PORT)), ..host.clone() }.to_string();
        let hosts = self.url.hosts().iter().map(server);
        hosts.collect::<Vec<_>>().join(",")
    }

    /// The node below which everything is kept; empty if that is the root.
    pub(crate) fn chroot(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// The user and the password, as the digest scheme takes them.
    pub(crate) fn login(&self) -> Option<Vec<u8>> {
        let user = self.url.user()?;
        Some(format!("{user}:{}", self.url.secret().unwrap_or_default()).into_bytes())
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
        format!("zookeeper://{}{}", hosts.join(","), self.chroot())
    }
}

static READ_BY_ALL: [Acl; 2] =
    [Acl::new_const(Permission::ALL, "auth", ""), Acl::new_const(Permission::READ, "world", "anyone")];

/// # Source
/// ZooKeeper: what servers take that are told nothing. Its example configuration says 2 s.
const TICK_DEFAULT: Duration = Duration::from_secs(3);

fn access(url: &StoreUrl) -> Result<Access, Invalid> {
    match (url.option("acl"), url.user()) {
        (Some("creator") | None, Some(_)) => Ok(Access::Creator),
        (Some("open"), _) | (None, None) => Ok(Access::Open),
        (Some("creator"), None) => {
            Err(url.refuse("acl=creator needs a login", "write zookeeper://USER:PASSWORD@HOST, or acl=open"))
        }
        (Some(_), _) => Err(url.refuse("its acl is neither creator nor open", "write acl=creator or acl=open")),
    }
}

fn check_chroot(url: &StoreUrl) -> Result<(), Invalid> {
    let chroot = url.path().trim_end_matches('/');
    let is_odd = |segment: &str| ["", ".", ".."].contains(&segment) || segment.contains(char::is_control);
    if chroot.split('/').skip(1).any(is_odd) {
        return Err(
            url.refuse("its chroot is no path of ZooKeeper", "write /NAME/NAME, without . or .. and empty names")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_in_full() {
        let config = ZookeeperConfig::from_url(
            "zookeeper://app:s%40@zk1,[::1]:2182/shop/locks/?prefix=a&session=10s&tick=500ms",
        )
        .unwrap();
        assert_eq!((config.servers().as_str(), config.chroot()), ("zk1:2181,[::1]:2182", "/shop/locks"));
        assert_eq!(config.login().as_deref(), Some(b"app:s@".as_slice()));
        assert_eq!((config.session().get(), config.tick()), (Duration::from_secs(10), Duration::from_millis(500)));
        assert_eq!(config.place(), "zookeeper://zk1,[::1]:2182/shop/locks");
        let shown = format!("{config:?}");
        assert!(!shown.contains("s@") && !shown.contains("app"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_refused_with_a_remedy() {
        for (url, expected) in [
            ("redis://zk", "its scheme is not zookeeper"),
            ("zookeeper:///shop", "it names no host"),
            ("zookeeper://zk/a//b", "its chroot is no path"),
            ("zookeeper://zk/a/../b", "its chroot is no path"),
            ("zookeeper://:secret@zk", "a password and no user"),
            ("zookeeper://zk?session=0s", "ttl \"0s\" is not valid"),
            ("zookeeper://zk?timeout=1s", "allowed: prefix, op_timeout, session, tick, acl"),
            ("zookeeper://zk?acl=creator", "acl=creator needs a login"),
            ("zookeeper://zk?acl=all", "neither creator nor open"),
        ] {
            let error = ZookeeperConfig::from_url(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
