//! What an `etcd:` URL says.

use lock_core::{Invalid, Prefix, StoreUrl, UrlForm, UrlHost};
use tonic::transport::Endpoint;

const FORM: UrlForm = UrlForm { what: "etcd URL", host: "a server", remedy: "write etcd://HOST:PORT,HOST:PORT/PATH" };
const OPTIONS: &[&str] = &["prefix"];

/// What keys begin with if the URL has no path: many programs may use one cluster.
const ROOT: &str = "leasehold/";
/// The port of clients.
const PORT: u16 = 2379;

/// Which etcd to use, and how.
///
/// ```
/// # use lock_etcd::EtcdConfig;
/// let config = EtcdConfig::from_url("etcd://e1,e2:2379,e3/shop/")?;
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EtcdConfig {
    url: StoreUrl,
    prefix: Prefix,
}

impl EtcdConfig {
    /// Reads `etcd://HOST:PORT,HOST:PORT/PATH`. The keys of all locks begin with the path and a slash; without a path, with `leasehold/`.
    ///
    /// Option behind the question mark: `prefix`.
    ///
    /// # Errors
    /// `Invalid` for another scheme, a missing host, and options that are unknown, given twice or not valid.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        let url = StoreUrl::read(url, FORM)?;
        if url.scheme() != "etcd" {
            return Err(url.refuse_form("its scheme is another one"));
        }
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        url.check_options(&[], OPTIONS)?;
        Ok(Self { prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(), url })
    }

    /// The servers, each with its port.
    pub(crate) fn servers(&self) -> impl Iterator<Item = String> {
        self.url.hosts().iter().map(|host| UrlHost { port: host.port.or(Some(PORT)), ..host.clone() }.to_string())
    }

    /// The servers to connect to.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        self.servers().filter_map(|server| Endpoint::from_shared(format!("http://{server}")).ok()).collect()
    }

    /// What all keys begin with.
    pub(crate) fn root(&self) -> String {
        match self.url.path().trim_matches('/') {
            "" => ROOT.to_owned(),
            path => format!("{path}/"),
        }
    }

    pub(crate) const fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The servers and the beginning of the keys, for display and to tell stores apart.
    pub(crate) fn place(&self) -> String {
        let servers = self.servers().collect::<Vec<_>>().join(",");
        format!("etcd://{servers}/{}", self.root())
    }
}
