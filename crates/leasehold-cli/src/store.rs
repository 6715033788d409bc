//! Which store is meant.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};

/// The URL of a store, chosen from the command line, the environment or the state directory.
///
/// It may hold a password: it is never printed.
#[derive(Clone)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// Takes the URL that was given, or the file in the state directory, whose directory is then there.
    pub(crate) fn choose(given: Option<&str>) -> Result<Self, Failure> {
        match given {
            Some(url) if !url.is_empty() => Ok(Self(url.to_owned())),
            _ => state_file(),
        }
    }

    /// Refuses a store that lives and dies with one process, where several must meet.
    pub(crate) fn shared(self) -> Result<Self, Failure> {
        if self.0.starts_with("memory:") {
            return Err(Failure::new(
                Exit::Config,
                "a memory: store is seen by this one process only and would exclude nobody; \
                 leave --url and LEASEHOLD_URL out for a file of your own, or give sqlite:PATH",
            ));
        }
        Ok(self)
    }

    /// The URL for the library.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What tells this store from others, without users and passwords.
    pub(crate) fn identity(&self) -> String {
        let mut pieces = self.0.split("://");
        let mut identity = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (authority, rest) = piece.split_at(piece.find(['/', '?', '#', '&']).unwrap_or(piece.len()));
            let hosts: Vec<_> = authority.split(',').map(|host| host.rsplit('@').next().unwrap_or(host)).collect();
            identity = format!("{identity}://{}{rest}", hosts.join(","));
        }
        identity
    }
}

fn state_file() -> Result<StoreUrl, Failure> {
    let directory = state_directory(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")).ok_or_else(|| {
        Failure::new(
            Exit::Config,
            "there is no state directory for the locks: neither XDG_STATE_HOME nor HOME is an absolute path; \
             set one of them, or give --url",
        )
    })?;
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(|error| {
        Failure::new(
            Exit::Config,
            format!("cannot create {}: {error}; make it writable, or give --url", directory.display()),
        )
    })?;
    let file = directory.join("locks.db");
    match file.to_str() {
        Some(path) => Ok(StoreUrl(format!("sqlite:{path}"))),
        None => Err(Failure::new(
            Exit::Config,
            format!("{} is not UTF-8; set XDG_STATE_HOME to a path that is, or give --url", file.display()),
        )),
    }
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
    fn the_identity_of_a_store_holds_no_secret() {
        let table = [
            ("redis://user:pass@host:1/2?prefix=x", "redis://host:1/2?prefix=x"),
            ("redlock://:a@h1:1,u:b@h2/0?max_ttl=5m", "redlock://h1:1,h2/0?max_ttl=5m"),
            ("redlock://?node=redis://:p@h1&node=redis://:q@h2", "redlock://?node=redis://h1&node=redis://h2"),
            ("sqlite:/a@b/locks.db", "sqlite:/a@b/locks.db"),
        ];
        for (url, identity) in table {
            assert_eq!(StoreUrl(url.to_owned()).identity(), identity);
        }
    }

    #[test]
    fn memory_is_refused_where_processes_must_meet() {
        assert_eq!(StoreUrl("memory:".to_owned()).shared().err().map(|f| f.exit), Some(Exit::Config));
    }
}
