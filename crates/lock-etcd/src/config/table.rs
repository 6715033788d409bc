//! The form of a configuration in a file.

use std::time::Duration;

use lock_core::{Invalid, Prefix, StoreUrl};
use serde::Deserialize;

use super::{EtcdConfig, FORM};

/// The URL, and its options as fields.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// The servers and what keys begin with: `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH`, or `etcds:`.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[Ee][Tt][Cc][Dd][Ss]?://")))]
    url: String,
    /// Precedes the names of locks in the store.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Prefix::is_none"))]
    prefix: Prefix,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
    /// A PEM file with the certificates of the authorities to trust, in place of those of the system.
    sslrootcert: Option<String>,
    /// A PEM file with the certificate of the client.
    sslcert: Option<String>,
    /// A PEM file with the key of that certificate.
    sslkey: Option<String>,
}

impl TryFrom<Table> for EtcdConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let fields = [
            ("prefix", table.prefix.as_deref().map(str::to_owned)),
            ("op_timeout", table.op_timeout.map(|time| format!("{}ns", time.as_nanos()))),
            ("sslrootcert", table.sslrootcert),
            ("sslcert", table.sslcert),
            ("sslkey", table.sslkey),
        ];
        let options: Vec<_> = fields.iter().map(|(option, _)| *option).collect();
        Self::of(StoreUrl::read(&table.url, FORM)?.with_fields(&options, fields)?)
    }
}
