//! What a `mysql:` URL says.

use std::path::PathBuf;
use std::time::Duration;

use lock_core::{Invalid, Prefix, UrlForm};
use lock_sql::{Address, AddressForm, Fields};
use serde::Deserialize;

const FORM: AddressForm = AddressForm {
    url: UrlForm {
        what: "mysql URL",
        host: "a server",
        remedy: "write mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE",
    },
    schemes: ["mysql", "mariadb"],
    options: &["prefix", "op_timeout", "sslmode", "sslrootcert"],
};

/// Which MySQL or MariaDB to use, and how. The tables are in the database of the URL.
///
/// Read from a URL, or from a table with `url` and `prefix`, `op_timeout`, `sslmode` or `sslrootcert`. `Debug` hides user and password.
///
/// A user or password that the URL does not give is read from `USER` and `MYSQL_PWD`.
///
/// ```
/// # use lock_mysql::MysqlConfig;
/// let config = MysqlConfig::from_url("mysql://app:sesame@db1,db2/shop?prefix=shop&sslrootcert=/etc/ca.pem")?;
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Table", description = "A MySQL or MariaDB database."))]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct MysqlConfig {
    pub(crate) address: Address,
}

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Table {
    /// The servers and the database: `mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("pattern" = "^([Mm][Yy][Ss][Qq][Ll]|[Mm][Aa][Rr][Ii][Aa][Dd][Bb])://"))
    )]
    url: String,
    /// Precedes the names of locks in the database.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Prefix::is_none"))]
    prefix: Prefix,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
    /// Whether connections are encrypted: `disable`, `prefer` (the default: always, except to a server on this machine), `require`.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("enum" = ["disable", "prefer", "require", "verify-ca", "verify-full", null]))
    )]
    sslmode: Option<String>,
    /// A file with the certificates of the authorities to trust, in place of those of the system.
    sslrootcert: Option<PathBuf>,
}

impl TryFrom<Table> for MysqlConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let prefix = table.prefix.as_deref().map(str::to_owned);
        let authority = table.sslrootcert.map(|path| path.to_string_lossy().into_owned());
        let options = vec![("prefix", prefix), ("sslmode", table.sslmode), ("sslrootcert", authority)];
        let fields = Fields { options, op_timeout: table.op_timeout };
        Ok(Self { address: Address::of_table(&table.url, FORM, fields)? })
    }
}

impl MysqlConfig {
    /// Reads `mysql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`, or the same with `mariadb:`.
    ///
    /// Options behind the question mark: `prefix`, `op_timeout`, `sslmode` (`disable`, `prefer`, `require`) and `sslrootcert`.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host or database, and options that are unknown, given twice or
    /// not valid.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        Ok(Self { address: Address::read(url, FORM)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_refused_with_a_remedy() {
        for (url, expected) in [
            ("postgres://db/shop", "neither mysql nor mariadb"),
            ("mysql:///shop", "names no host"),
            ("mysql://db", "names no database"),
            ("mysql://db/shop?sslmode=allow", "write disable, prefer or require"),
            ("mysql://db/shop?schema=a", "allowed: prefix, op_timeout, sslmode, sslrootcert"),
        ] {
            let error = MysqlConfig::from_url(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn both_schemes_name_the_same_store() {
        let place = |url| MysqlConfig::from_url(url).unwrap().address.place();
        assert_eq!(place("mariadb://app:sesame@db/shop"), place("mysql://db/shop"));
    }
}
