//! The form of a configuration in a file.

use std::time::Duration;

use lock_core::{Invalid, Prefix, StoreUrl, Ttl};
use serde::Deserialize;

use super::{FORM, ZookeeperConfig};

/// The URL, and its options as fields.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// The servers and the chroot: `zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/CHROOT`, or `zookeeper+tls:`.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[Zz][Oo][Oo][Kk][Ee][Ee][Pp][Ee][Rr](\\+[Tt][Ll][Ss])?://")))]
    url: String,
    /// Precedes the names of locks in the store.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Prefix::is_none"))]
    prefix: Prefix,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
    /// How long leases last, 30 s by default.
    session: Option<Ttl>,
    /// The `tickTime` of the servers, 3 s by default.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    tick: Option<Duration>,
    /// Who may use the nodes that the client creates: `creator` (the default with a login) or `open`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["creator", "open", null])))]
    acl: Option<String>,
    /// How user and password are used: `digest` (the default) or `sasl`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["digest", "sasl", null])))]
    auth: Option<String>,
    /// A PEM file with the certificates of the authorities to trust. TLS needs it.
    sslrootcert: Option<String>,
    /// A PEM file with the certificate of the client.
    sslcert: Option<String>,
    /// A PEM file with the key of that certificate.
    sslkey: Option<String>,
}

impl TryFrom<Table> for ZookeeperConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let shown = |time: Duration| format!("{}ns", time.as_nanos());
        let fields = [
            ("prefix", table.prefix.as_deref().map(str::to_owned)),
            ("op_timeout", table.op_timeout.map(shown)),
            ("session", table.session.map(|session| shown(session.get()))),
            ("tick", table.tick.map(shown)),
            ("acl", table.acl),
            ("auth", table.auth),
            ("sslrootcert", table.sslrootcert),
            ("sslcert", table.sslcert),
            ("sslkey", table.sslkey),
        ];
        let options: Vec<_> = fields.iter().map(|(option, _)| *option).collect();
        Self::of(StoreUrl::read(&table.url, FORM)?.with_fields(&options, fields)?)
    }
}
