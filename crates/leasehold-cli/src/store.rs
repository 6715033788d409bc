//! The choice of the store.

use std::env::var_os;
use std::ffi::OsString;
use std::fmt;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use leasehold::backend::Reach;
use leasehold::sqlite::SqliteConfig;
use leasehold::{BackendConfig, Invalid};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};

/// A store, chosen from the command line, the environment or the state directory.
///
/// A URL may hold a password: it is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Store {
    /// A URL as given by the user.
    Url(String),
    /// A SQLite file. Any path is possible here; a URL cannot express them all.
    File(PathBuf),
}

/// Where a store was named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// On the command line or in the environment.
    Given,
    /// In this configuration file.
    File(PathBuf),
    /// Nowhere: it is the file in the state directory.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("from --url or LEASEHOLD_URL"),
            Self::File(file) => write!(f, "from {}", file.display()),
            Self::Default => {
                f.write_str("the default, since neither --url, LEASEHOLD_URL nor a configuration file names another")
            }
        }
    }
}

impl Store {
    /// Takes the given URL, or the file in the state directory, which is created if needed.
    pub(crate) fn choose(given: Option<&str>) -> Result<Self, Failure> {
        given.map_or_else(state_file, |url| Ok(Self::Url(url.to_owned())))
    }

    /// Refuses a store that only one process can see.
    pub(crate) fn shared(self) -> Result<Self, Failure> {
        if self.config().is_ok_and(|config| config.reach() == Reach::Process) {
            return Err(Failure::new(
                Exit::Config,
                "a memory: store is visible to this process only and would exclude nobody; \
                 omit --url and LEASEHOLD_URL to use a per-user file, or give sqlite:PATH",
            ));
        }
        Ok(self)
    }

    /// The store for the library.
    pub(crate) fn config(&self) -> Result<BackendConfig, Invalid> {
        match self {
            Self::Url(url) => BackendConfig::from_url(url),
            Self::File(path) => Ok(BackendConfig::Sqlite(SqliteConfig::new(path))),
        }
    }
}

/// The file in the state directory, which is created for the user alone.
fn state_file() -> Result<Store, Failure> {
    let directory = state_directory(var_os("XDG_STATE_HOME"), var_os("HOME")).ok_or_else(|| {
        Failure::new(
            Exit::Config,
            "there is no state directory for the locks: neither XDG_STATE_HOME nor HOME is an absolute path; \
             set one of them, or give --url",
        )
    })?;
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(|error| {
        let denied = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].contains(&error.kind());
        let exit = if denied { Exit::Denied } else { Exit::Config };
        let directory = directory.display();
        Failure::new(exit, format!("cannot create {directory}: {error}; make it writable, or give --url"))
    })?;
    Ok(Store::File(directory.join("locks.db")))
}

/// # Source
/// XDG Base Directory Specification: a path that is not absolute counts as not set.
fn state_directory(xdg_state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(xdg_state_home).or_else(|| absolute(home).map(|home| home.join(".local/state")))?;
    Some(base.join("leasehold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_is_never_guessed() {
        let directory =
            |xdg: Option<&str>, home: Option<&str>| state_directory(xdg.map(Into::into), home.map(Into::into));
        assert_eq!(directory(Some("/s"), Some("/h")), Some("/s/leasehold".into()));
        assert_eq!(directory(Some("s"), Some("/h")), Some("/h/.local/state/leasehold".into()));
        assert_eq!(directory(Some(""), Some("/h")), Some("/h/.local/state/leasehold".into()));
        assert_eq!(directory(None, Some("h")), None);
        assert_eq!(directory(None, None), None);
    }

    #[test]
    fn memory_is_refused_where_processes_must_meet() {
        assert_eq!(Store::Url("memory:".to_owned()).shared().err().map(|f| f.exit), Some(Exit::Config));
    }
}
