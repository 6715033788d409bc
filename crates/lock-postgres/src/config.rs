//! What a `postgres:` URL says.

use std::path::PathBuf;
use std::time::Duration;

use lock_core::{Invalid, Prefix, UrlForm};
use lock_sql::{Address, AddressForm, Fields};
use serde::Deserialize;

const FORM: AddressForm = AddressForm {
    url: UrlForm {
        what: "postgres URL",
        host: "a server",
        remedy: "write postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE",
    },
    schemes: ["postgres", "postgresql"],
    options: &["prefix", "op_timeout", "schema", "sslmode", "sslrootcert"],
};

/// Where clients find the tables unless the URL says otherwise.
const SCHEMA_DEFAULT: &str = "leasehold";
/// Chosen: the longest name that PostgreSQL does not cut.
const SCHEMA_BYTES_MAX: usize = 63;

/// Which PostgreSQL to use, and how.
///
/// Read from a URL, or from a table with `url` and `prefix`, `op_timeout`, `schema`, `sslmode` or `sslrootcert`. `Debug` hides user and
/// password.
///
/// A user or password that the URL does not give is read from `PGUSER` or `USER`, and from `PGPASSWORD` or the file that `PGPASSFILE`
/// names, by default `~/.pgpass`.
///
/// ```
/// # use lock_postgres::PostgresConfig;
/// let config = PostgresConfig::from_url("postgres://app:sesame@db1,db2/shop?prefix=shop&sslrootcert=/etc/ca.pem")?;
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Table", description = "A PostgreSQL database."))]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct PostgresConfig {
    pub(crate) address: Address,
    pub(crate) schema: String,
}

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Table {
    /// The servers and the database: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[Pp][Oo][Ss][Tt][Gg][Rr][Ee][Ss]([Qq][Ll])?://")))]
    url: String,
    /// Precedes the names of locks in the database.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Prefix::is_none"))]
    prefix: Prefix,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
    /// The schema of the tables; `leasehold` by default.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[a-z_][a-z0-9_]{0,62}$")))]
    schema: Option<String>,
    /// Whether connections are encrypted: `disable`, `prefer` (the default: always, except to a server on this machine), `require`.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("enum" = ["disable", "prefer", "require", "verify-ca", "verify-full", null]))
    )]
    sslmode: Option<String>,
    /// A file with the certificates of the authorities to trust, in place of those of the system.
    sslrootcert: Option<PathBuf>,
}

impl TryFrom<Table> for PostgresConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let prefix = table.prefix.as_deref().map(str::to_owned);
        let authority = table.sslrootcert.map(|path| path.to_string_lossy().into_owned());
        let options =
            vec![("prefix", prefix), ("schema", table.schema), ("sslmode", table.sslmode), ("sslrootcert", authority)];
        let fields = Fields { options, op_timeout: table.op_timeout };
        Self::at(Address::of_table(&table.url, FORM, fields)?)
    }
}

impl PostgresConfig {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`, or the same with `postgresql:`.
    ///
    /// Options behind the question mark: `prefix`, `op_timeout`, `schema`, `sslmode` (`disable`, `prefer`, `require`) and `sslrootcert`.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for another scheme, a missing host or database, and options that are unknown, given twice or
    /// not valid.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::at(Address::read(url, FORM)?)
    }

    fn at(address: Address) -> Result<Self, Invalid> {
        let schema = address.option("schema").unwrap_or(SCHEMA_DEFAULT).to_owned();
        check_schema(&schema)?;
        Ok(Self { address, schema })
    }

    /// The schema, as statements name it.
    pub(crate) fn quoted_schema(&self) -> String {
        quoted(&self.schema)
    }
}

/// The name of a schema in a statement. It may be a keyword.
pub(crate) fn quoted(schema: &str) -> String {
    if schema == SCHEMA_DEFAULT { schema.to_owned() } else { format!("\"{schema}\"") }
}

/// Accepts what needs no escapes, because the schema is written into statements; and no schema that others use.
pub(crate) fn check_schema(schema: &str) -> Result<(), Invalid> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = schema.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    if begins
        && schema.bytes().all(is_plain)
        && schema.len() <= SCHEMA_BYTES_MAX
        && !schema.starts_with("pg_")
        && schema != "public"
    {
        return Ok(());
    }
    let is_taken = schema == "public" || schema.starts_with("pg_");
    let (problem, remedy) = if is_taken {
        ("it holds what others made", "name a schema of its own, such as leasehold; public and pg_* are refused")
    } else {
        ("it is not a plain name", "use up to 63 lower-case letters, digits and underscores, such as leasehold")
    };
    Err(Invalid::new("schema", schema, problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_in_full() {
        let url = "postgresql://app:s%40fe@db1:5433,[::1]/shop?prefix=a&op_timeout=500ms&schema=locks&sslmode=require";
        let config = PostgresConfig::from_url(url).unwrap();
        assert_eq!(
            (config.address.user(), config.address.password(), config.address.database()),
            (Some("app"), Some("s@fe"), "shop")
        );
        assert_eq!((config.address.hosts().len(), config.address.hosts()[0].port), (2, Some(5433)));
        assert_eq!(config.schema, "locks");
        assert!(!config.address.is_plain(&config.address.hosts()[1]));
        assert_eq!(config.address.op_timeout(), Some(Duration::from_millis(500)));
        assert_eq!(config.address.place(), "postgres://db1:5433,[::1]/shop");
        let shown = format!("{config:?}");
        assert!(!shown.contains("s@fe") && !shown.contains("s%40fe") && !shown.contains("app"), "{shown}");
    }

    #[test]
    fn a_table_has_the_same_options() {
        let table = r#"{ "url": "postgres://db/shop", "schema": "locks", "op_timeout": "1s", "prefix": "a" }"#;
        let config: PostgresConfig = serde_json::from_str(table).unwrap();
        assert_eq!((config.schema.as_str(), config.address.op_timeout()), ("locks", Some(Duration::from_secs(1))));
        assert_eq!(config.address.prefix().as_deref(), Some("a"));
        let twice = r#"{ "url": "postgres://db/shop?schema=a", "schema": "b" }"#;
        assert!(serde_json::from_str::<PostgresConfig>(twice).unwrap_err().to_string().contains("fields of the table"));
    }

    #[test]
    fn what_is_wrong_is_refused_with_a_remedy() {
        for (url, expected) in [
            ("mysql://db/shop", "neither postgres nor postgresql"),
            ("postgres:///shop", "names no host"),
            ("postgres://db", "names no database"),
            ("postgres://db/shop?sslmode=allow", "write disable, prefer or require"),
            ("postgres://db/shop?schema=A", "lower-case letters"),
            ("postgres://db/shop?schema=pg_locks", "public and pg_* are refused"),
            ("postgres://db/shop?schema=a\"b", "not a plain name"),
            ("postgres://db/shop?schema=public", "name a schema of its own, such as leasehold"),
            ("postgres://db/shop?op_timeout=0s", "op_timeout"),
            ("postgres://db/shop?port=1", "allowed: prefix, op_timeout, schema, sslmode, sslrootcert"),
        ] {
            let error = PostgresConfig::from_url(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
