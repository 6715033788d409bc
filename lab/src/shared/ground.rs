//! Where a scene keeps its data, and how it removes them.

use std::fs::remove_dir_all;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use leasehold::BackendConfig;
use leasehold::LockName;
use leasehold::blocking::{Client, connect_to};
use leasehold::sqlite::SqliteConfig;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::children::Children;
use super::place::Place;
use super::raw::{Fence, Raw};
use crate::shared::failure::{Exit, Failure};

/// Where the locks are. The URL may contain a password, so this has no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
enum Store {
    Url(String),
    File(PathBuf),
}

impl Store {
    fn config(&self) -> Result<BackendConfig, Failure> {
        Ok(match self {
            Self::Url(url) => BackendConfig::from_url(url)?,
            Self::File(path) => BackendConfig::Sqlite(SqliteConfig::new(path)),
        })
    }
}

/// Where the data and the locks are: everything that a worker needs to find them.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ground {
    place: Place,
    locks: Store,
    prefix: String,
    /// What is cleared, without the prefix.
    keys: Vec<String>,
    /// Held during each request. Locked for writing, and never unlocked, once the scene is interrupted.
    #[serde(skip)]
    closed: Arc<RwLock<()>>,
    /// Killed once the scene is interrupted.
    #[serde(skip)]
    children: Children,
}

impl Ground {
    fn at(place: Place, locks: Store, prefix: String, keys: Vec<String>) -> Self {
        Self { place, locks, prefix, keys, closed: Arc::default(), children: Children::default() }
    }

    /// Opens one more connection for the data and the naive locks.
    pub(crate) fn open_raw(&self) -> Result<Box<dyn Raw>, Failure> {
        Ok(Box::new(WhileOpen { raw: self.place.open()?, closed: self.closed.clone() }))
    }

    /// Opens one more client of `leasehold`.
    pub(crate) fn open_locks(&self) -> Result<Client, Failure> {
        Ok(connect_to(&self.locks.config()?)?)
    }

    /// The processes that work here.
    pub(crate) fn children(&self) -> &Children {
        &self.children
    }

    /// Starts something, unless the scene is interrupted: then this never returns.
    pub(crate) fn unless_closed<T>(&self, start: impl FnOnce() -> T) -> T {
        let _open = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        start()
    }

    /// The key of something in the store. It is removed at the end if its name was given to [`Tidy::open`].
    pub(crate) fn key(&self, what: &str) -> String {
        format!("{}{what}", self.prefix)
    }

    /// The name of a lock of `leasehold`.
    pub(crate) fn lock_name(&self, what: &str) -> Result<LockName, Failure> {
        self.key(what).parse().map_err(|error| Failure::system("cannot name the lock", error))
    }

    /// Removes all data.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        let mut raw = self.place.open()?;
        self.keys.iter().try_for_each(|what| raw.delete(&self.key(what)).map(drop))
    }

    fn remove(&self) -> Result<(), Failure> {
        match &self.place {
            Place::Redis(_) => self.clear(),
            // The directory was created for this file only.
            Place::Sqlite(file) => file.parent().map_or(Ok(()), |directory| {
                remove_dir_all(directory).map_err(|error| Failure::system("cannot remove the scene's file", error))
            }),
        }
    }
}

/// A connection on which nothing is written once the scene is interrupted.
struct WhileOpen {
    raw: Box<dyn Raw>,
    closed: Arc<RwLock<()>>,
}

impl WhileOpen {
    fn ask<T>(&mut self, request: impl FnOnce(&mut dyn Raw) -> Result<T, Failure>) -> Result<T, Failure> {
        let _open = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        request(&mut *self.raw)
    }
}

impl Raw for WhileOpen {
    fn get(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        self.ask(|raw| raw.get(key))
    }

    fn set(&mut self, key: &str, value: u64) -> Result<(), Failure> {
        self.ask(|raw| raw.set(key, value))
    }

    fn set_if_absent(&mut self, key: &str, value: u64, expiry: Option<Duration>) -> Result<bool, Failure> {
        self.ask(|raw| raw.set_if_absent(key, value, expiry))
    }

    fn renew(&mut self, key: &str, expiry: Duration) -> Result<Option<u64>, Failure> {
        self.ask(|raw| raw.renew(key, expiry))
    }

    fn delete(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        self.ask(|raw| raw.delete(key))
    }

    fn compare_and_delete(&mut self, key: &str, value: u64) -> Result<bool, Failure> {
        self.ask(|raw| raw.compare_and_delete(key, value))
    }

    fn raise(&mut self, fence: Fence<'_>) -> Result<bool, Failure> {
        self.ask(|raw| raw.raise(fence))
    }

    fn set_fenced(&mut self, key: &str, value: u64, fence: Fence<'_>) -> Result<bool, Failure> {
        self.ask(|raw| raw.set_fenced(key, value, fence))
    }
}

/// A ground that is cleaned up in any case.
pub(crate) struct Tidy {
    pub(crate) ground: Ground,
    /// The name of the store for display, without secrets.
    pub(crate) shown: String,
}

impl Tidy {
    /// Opens the store of a URL, or a file in the directory for temporary files, for data under these keys.
    pub(crate) fn open(url: Option<&str>, keys: Vec<String>) -> Result<Self, Failure> {
        let tidy = match url {
            None => Self::in_file(None, keys)?,
            Some(url) => Self::at(url, keys)?,
        };
        tidy.ground.open_locks()?;
        tidy.leave_on_signal()?;
        Ok(tidy)
    }

    fn at(url: &str, keys: Vec<String>) -> Result<Self, Failure> {
        let store = Store::Url(url.to_owned());
        match store.config()? {
            BackendConfig::Sqlite(_) => Self::in_file(Some(url), keys),
            BackendConfig::Redis(config) => {
                let prefix = config.prefix().map_or_else(String::new, |prefix| format!("{prefix}:"));
                let prefix = format!("{prefix}{}", own_prefix()?);
                let ground = Ground::at(Place::Redis(url.to_owned()), store, prefix, keys);
                Ok(Self { ground, shown: config.shown_url().to_owned() })
            }
            BackendConfig::Memory(_) | _ => {
                Err(Failure::new(Exit::Config, "the laboratory supports sqlite: and redis: stores only"))
            }
        }
    }

    fn in_file(locks: Option<&str>, keys: Vec<String>) -> Result<Self, Failure> {
        let prefix = own_prefix()?;
        let directory = scratch_directory()?;
        let shown = locks.unwrap_or("a temporary SQLite file").to_owned();
        let locks = locks.map_or_else(|| Store::File(directory.join("locks.db")), |url| Store::Url(url.to_owned()));
        let place = Place::Sqlite(directory.join("account.db"));
        Ok(Self { ground: Ground::at(place, locks, prefix, keys), shown })
    }

    /// Removes everything.
    ///
    /// # Errors
    /// Those of the store; what is left begins with `leasehold-lab:`.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        self.ground.remove()
    }

    fn leave_on_signal(&self) -> Result<(), Failure> {
        let mut caught =
            Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| Failure::system("cannot catch signals", error))?;
        let ground = self.ground.clone();
        thread::spawn(move || {
            if let Some(signal) = caught.forever().next() {
                let _closed = ground.closed.write().unwrap_or_else(PoisonError::into_inner);
                ground.children.kill();
                ground.remove().ok();
                // Ends this process, so that a shell can tell that it was interrupted.
                emulate_default_handler(signal).ok();
            }
        });
        Ok(())
    }
}

impl Drop for Tidy {
    fn drop(&mut self) {
        // The failure itself is reported; a second one would hide it.
        self.ground.remove().ok();
    }
}

fn scratch_directory() -> Result<PathBuf, Failure> {
    let directory = tempfile::Builder::new().prefix("leasehold-lab-").tempdir();
    let directory = directory.map_err(|error| Failure::system("cannot make a temporary directory", error))?;
    Ok(directory.keep())
}

fn own_prefix() -> Result<String, Failure> {
    let number = getrandom::u64().map_err(|error| Failure::system("cannot get random numbers", error))?;
    Ok(format!("leasehold-lab:{number:016x}:"))
}
