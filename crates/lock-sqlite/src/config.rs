//! What a `sqlite:` URL says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, parse_duration};
use serde::{Deserialize, Serialize};

/// Which file to use, and how.
///
/// Read from a URL, or from a table with `path`, `prefix` and `op_timeout`.
///
/// ```
/// # use lock_sqlite::SqliteConfig;
/// let config = SqliteConfig::from_url("sqlite:/var/lib/shop/locks.db?prefix=shop&op_timeout=500ms")?;
/// assert_eq!(config.path, std::path::Path::new("/var/lib/shop/locks.db"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(with = "Table", description = "A SQLite file shared by the processes of one machine.")
)]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct SqliteConfig {
    /// The file, by an absolute path. Its directory must exist; the file itself is created if it is missing.
    pub path: PathBuf,
    /// The prefix of lock names in the file, if there is one.
    #[serde(skip_serializing_if = "Prefix::is_none")]
    pub prefix: Prefix,
    /// How long one request may take. This is a setting of the client; the backend gets a limit with each request.
    #[serde(with = "lock_core::human_duration::option", skip_serializing_if = "Option::is_none")]
    pub op_timeout: Option<Duration>,
}

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Table {
    /// The file. Its directory must exist; the file itself is created if it is missing.
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 1, "not" = { "const": ":memory:" })))]
    path: PathBuf,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Prefix::is_none"))]
    prefix: Prefix,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
}

impl TryFrom<Table> for SqliteConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let op_timeout = Policy::check_op_timeout(table.op_timeout)?;
        Ok(Self { path: file_path(&table.path)?, prefix: table.prefix, op_timeout })
    }
}

impl SqliteConfig {
    /// The file at `path`, without options. A path that does not begin with `/` is relative to the present working directory. If that
    /// is not known, the path stays relative, and opening it fails.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let path = std::path::absolute(&path).unwrap_or(path);
        Self { path, prefix: Prefix::default(), op_timeout: None }
    }

    /// Reads `sqlite:PATH`, with `prefix` and `op_timeout` in the query.
    ///
    /// A path that does not begin with `/` is relative to the present working directory: the file stays the same if the process
    /// changes that later. Nothing is percent-decoded: a path
    /// with a question mark needs a table instead of a URL.
    ///
    /// # Errors
    /// `Invalid` for another scheme, a path that names no file, and options that are unknown or given twice.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        let Some(rest) = url.strip_prefix("sqlite:") else {
            // Only the scheme is shown: the URL of another store may hold a password.
            let scheme = url.split_once(':').map_or("(no scheme)", |(scheme, _)| scheme);
            return Err(refuse(scheme, "its scheme is not \"sqlite\"", "write sqlite:PATH"));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        if path.starts_with("//") && !path.starts_with("///") {
            return Err(refuse(url, "it names a host", "write sqlite:PATH, or sqlite:///PATH from the root"));
        }
        if path.starts_with('~') {
            return Err(tilde(url, path));
        }
        let mut config = Self::new(file_path(Path::new(path))?);
        let (prefix, op_timeout) = options(url, query)?;
        config.prefix = prefix.map(str::parse).transpose()?.unwrap_or_default();
        config.op_timeout =
            Policy::check_op_timeout(op_timeout.map(|text| parse_duration("op_timeout", text)).transpose()?)?;
        Ok(config)
    }
}

/// A directory named ~ is never what was meant.
fn tilde(url: &str, path: &str) -> Invalid {
    let remedy = match path.strip_prefix("~/") {
        Some(rest) => format!("write $HOME/{}", rest.escape_debug()),
        None => format!("write the whole path, or ./{} for a file of that name", path.escape_debug()),
    };
    refuse(url, "the shell expands ~ only at the beginning of a word", remedy)
}

fn options<'a>(url: &str, query: &'a str) -> Result<(Option<&'a str>, Option<&'a str>), Invalid> {
    let (mut prefix, mut op_timeout) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let slot = match key {
            "prefix" => &mut prefix,
            "op_timeout" => &mut op_timeout,
            _ => {
                let problem = format!("its option \"{}\" is unknown", key.escape_debug());
                return Err(refuse(url, problem, "allowed: prefix, op_timeout"));
            }
        };
        if slot.replace(value).is_some() {
            return Err(refuse(url, format!("its option \"{key}\" is given twice"), "give it once"));
        }
    }
    Ok((prefix, op_timeout))
}

fn file_path(path: &Path) -> Result<PathBuf, Invalid> {
    if path == Path::new(":memory:") {
        return Err(refuse(":memory:", "it names no file", "use memory: for locks within one process"));
    }
    if path.file_name().is_none() {
        return Err(refuse(
            path.display(),
            "it names no file",
            "write sqlite:PATH, such as sqlite:/var/lib/app/locks.db",
        ));
    }
    std::path::absolute(path).map_err(|error| {
        let problem = format!("it is relative to the working directory, which is not known: {error}");
        refuse(path.display(), problem, "give an absolute path")
    })
}

fn refuse(given: impl std::fmt::Display, problem: impl Into<String>, remedy: impl Into<String>) -> Invalid {
    Invalid::new("sqlite URL", given, problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_in_full() {
        for (url, path) in [
            ("sqlite:locks.db", "locks.db"),
            ("sqlite:../a b/locks.db", "../a b/locks.db"),
            ("sqlite:/a%20b/locks.db", "/a%20b/locks.db"),
            ("sqlite:///var/locks.db", "///var/locks.db"),
        ] {
            assert_eq!(SqliteConfig::from_url(url).unwrap(), SqliteConfig::new(path), "{url}");
        }
        let config = SqliteConfig::from_url("sqlite:x.db?prefix=shop&op_timeout=500ms").unwrap();
        assert_eq!(config.prefix, "shop".parse().unwrap());
        assert_eq!(config.op_timeout, Some(Duration::from_millis(500)));
        assert_eq!(SqliteConfig::from_url("sqlite:x.db?").unwrap(), SqliteConfig::new("x.db"));
    }

    #[test]
    fn what_is_wrong_is_refused_with_a_remedy() {
        for (url, expected) in [
            ("sqlite:", "names no file"),
            ("sqlite:/", "names no file"),
            ("sqlite:..", "names no file"),
            ("sqlite::memory:", "use memory:"),
            ("sqlite://host/locks.db", "host"),
            ("sqlite:~/x.db?prefix=a", "expands ~ only at the beginning of a word; write $HOME/x.db"),
            ("sqlite:~ann/x.db", "or ./~ann/x.db for a file"),
            ("sqlite:x.db?prefx=a", "allowed: prefix, op_timeout"),
            ("sqlite:x.db?prefix=a&prefix=b", "given twice"),
            ("sqlite:x.db?prefix=", "1 to 100 bytes"),
            ("sqlite:x.db?prefix=leasehold", "reserved"),
            ("sqlite:x.db?op_timeout=soon", "op_timeout"),
            ("sqlite:x.db?op_timeout=0s", "op_timeout"),
            ("redis://:sesame@host", "scheme"),
        ] {
            let refusal = SqliteConfig::from_url(url).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame"), "{refusal}");
        }
    }

    #[test]
    fn tables_are_strict_and_come_back() {
        let text = r#"{"path":"/locks.db","prefix":"shop","op_timeout":"1s"}"#;
        let config: SqliteConfig = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), text);
        let bare: SqliteConfig = serde_json::from_str(r#"{"path":"/locks.db"}"#).unwrap();
        assert_eq!(serde_json::to_string(&bare).unwrap(), r#"{"path":"/locks.db"}"#);
        let relative: SqliteConfig = serde_json::from_str(r#"{"path":"locks.db"}"#).unwrap();
        assert_eq!(relative.path, std::env::current_dir().unwrap().join("locks.db"));
        for bad in [r#"{"path":"a","prefx":"b"}"#, r#"{"path":""}"#, r#"{"path":"a","op_timeout":"0s"}"#, "{}"] {
            assert!(serde_json::from_str::<SqliteConfig>(bad).is_err(), "{bad}");
        }
    }
}
