//! Deployments of several servers in a configuration file: each says what a URL says.

use lock_core::{Invalid, StoreUrl};
use serde::Deserialize;

use super::scheme::Scheme;

/// Sentinels in a configuration file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SentinelTable {
    /// The sentinels, each as HOST or HOST:PORT.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), inner(regex(pattern = "^[^@?#/]+$"))))]
    nodes: Vec<String>,
    /// The name under which the sentinels know the primary.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9._-]+$")))]
    master: String,
    /// The number of the database.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = u32::MAX)))]
    database: u32,
    /// The user at the servers.
    username: Option<String>,
    /// The password of the servers.
    password: Option<String>,
    /// The user at the sentinels.
    sentinel_username: Option<String>,
    /// The password of the sentinels.
    sentinel_password: Option<String>,
    /// Whether to use TLS, for the servers and the sentinels.
    #[serde(default)]
    ssl: bool,
}

/// A cluster in a configuration file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterTable {
    /// A few of its servers, each as HOST or HOST:PORT. They name the others.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), inner(regex(pattern = "^[^@?#/]+$"))))]
    nodes: Vec<String>,
    /// The user at all servers.
    username: Option<String>,
    /// The password at all servers.
    password: Option<String>,
    /// Whether to use TLS.
    #[serde(default)]
    ssl: bool,
}

impl SentinelTable {
    /// The URL that says the same.
    pub(super) fn into_url(self) -> Result<StoreUrl, Invalid> {
        let scheme = if self.ssl { "rediss+sentinel" } else { "redis+sentinel" };
        let url = of_hosts(scheme, &self.nodes, &format!("/{}/{}", self.master, self.database))?;
        Ok(url
            .with_login(self.username, self.password)
            .with_option("sentinel_username", self.sentinel_username)
            .with_option("sentinel_password", self.sentinel_password))
    }
}

impl ClusterTable {
    /// The URL that says the same.
    pub(super) fn into_url(self) -> Result<StoreUrl, Invalid> {
        let scheme = if self.ssl { "rediss+cluster" } else { "redis+cluster" };
        Ok(of_hosts(scheme, &self.nodes, "")?.with_login(self.username, self.password))
    }
}

fn of_hosts(scheme: &str, nodes: &[String], path: &str) -> Result<StoreUrl, Invalid> {
    StoreUrl::of_hosts(scheme, nodes, path, Scheme::of(scheme)?.form)
}
