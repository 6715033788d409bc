//! What an `etcd:` URL says.

mod table;

use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, UrlForm, UrlHost, parse_duration};
use serde::Deserialize;
use tonic::transport::Endpoint;

const FORM: UrlForm = UrlForm { what: "etcd URL", host: "a server", remedy: "write etcd://HOST:PORT,HOST:PORT/PATH" };
const OPTIONS: &[&str] = &["prefix", "op_timeout"];

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
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "table::Table", description = "An etcd cluster."))]
#[serde(try_from = "table::Table")]
#[non_exhaustive]
pub struct EtcdConfig {
    url: StoreUrl,
    prefix: Prefix,
    pub(crate) op_timeout: Option<Duration>,
}

impl EtcdConfig {
    /// Reads `etcd://HOST:PORT,HOST:PORT/PATH`. The keys of all locks begin with the path and a slash; without a path, with `leasehold/`.
    ///
    /// Options behind the question mark: `prefix`, `op_timeout`.
    ///
    /// # Errors
    /// `Invalid` for another scheme, a missing host, and options that are unknown, given twice or not valid.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::of(StoreUrl::read(url, FORM)?)
    }

    fn of(url: StoreUrl) -> Result<Self, Invalid> {
        if url.scheme() != "etcd" {
            return Err(url.refuse_form("its scheme is another one"));
        }
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        url.check_options(&[], OPTIONS)?;
        let op_timeout = url.option("op_timeout").map(|text| parse_duration("op_timeout", text)).transpose()?;
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(op_timeout)?,
            url,
        })
    }

    /// The same with each server alone.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> {
        self.url.hosts().iter().map(|host| Self { url: self.url.at(host), ..self.clone() })
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
        // Keys of other programs may begin with a slash, so only the one behind the hosts is left out.
        match self.url.path().trim_end_matches('/').strip_prefix('/').unwrap_or_default() {
            "" => ROOT.to_owned(),
            path => format!("{path}/"),
        }
    }

    pub(crate) fn has_login(&self) -> bool {
        self.url.user().is_some()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "etcds"
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
