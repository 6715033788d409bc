//! What an `etcd:` URL says.

mod security;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, UrlForm, UrlHost, parse_duration};
use serde::Deserialize;

pub(crate) use self::security::{Login, TlsFiles};
use self::security::{check_hosts, has_tls, login, tls_files};

const FORM: UrlForm =
    UrlForm { what: "etcd URL", host: "a server", remedy: "write etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH" };
const OPTIONS: &[&str] = &["prefix", "op_timeout"];
/// Those of URLs with TLS.
const TLS_OPTIONS: &[&str] = &["sslrootcert", "sslcert", "sslkey"];

/// What keys begin with if the URL has no path: many programs may use one cluster.
const ROOT: &str = "leasehold/";
/// The port of clients, with and without TLS.
const PORT: u16 = 2379;

/// Which etcd to use, and how. `Debug` hides user and password.
///
/// Read from a URL, or from a table with `url` and any of the URL's options.
///
/// ```
/// # use lock_etcd::EtcdConfig;
/// let config = EtcdConfig::from_url("etcd://app:sesame@e1,e2:2379,e3/shop/")?;
/// assert!(!format!("{config:?}").contains("sesame"));
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
    login: Option<Login>,
    tls: Option<TlsFiles>,
}

impl EtcdConfig {
    /// Reads `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH`, or `etcds:` for TLS. The keys of all locks begin with the path and a slash;
    /// without a path, with `leasehold/`. A role that may read and write these keys is enough for the user.
    ///
    /// Options behind the question mark:
    /// - `prefix`, `op_timeout`
    /// - `sslrootcert`: with TLS, a PEM file with the certificates of the authorities to trust, in place of those of the system
    /// - `sslcert`, `sslkey`: with TLS, PEM files with the client's certificate and its key. Servers with `--client-cert-auth` want them. Without
    ///   a user in the URL, the common name of the certificate is the user.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host, and options that are unknown, given twice or not valid;
    /// for TLS if this build does not include it.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::of(StoreUrl::read(url, FORM)?)
    }

    fn of(url: StoreUrl) -> Result<Self, Invalid> {
        let has_tls = has_tls(&url)?;
        if url.hosts().is_empty() {
            return Err(url.refuse_form("it names no host"));
        }
        if !has_tls && TLS_OPTIONS.iter().any(|option| url.option(option).is_some()) {
            return Err(url.refuse("it has options for TLS, and asks for none", "write etcds://"));
        }
        let allowed = if has_tls { [OPTIONS, TLS_OPTIONS].concat() } else { OPTIONS.to_vec() };
        url.check_options(&[], &allowed)?;
        check_hosts(&url)?;
        let op_timeout = url.option("op_timeout").map(|text| parse_duration("op_timeout", text)).transpose()?;
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(op_timeout)?,
            login: login(&url)?,
            tls: has_tls.then(|| tls_files(&url)).transpose()?,
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

    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// The files for TLS; `None` if connections are not encrypted.
    pub(crate) const fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// What all keys begin with.
    pub(crate) fn root(&self) -> String {
        // Keys of other programs may begin with a slash, so only the one behind the hosts is left out.
        match self.url.path().trim_end_matches('/').strip_prefix('/').unwrap_or_default() {
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
        format!("{}://{servers}/{}", self.url.scheme(), self.root())
    }
}
