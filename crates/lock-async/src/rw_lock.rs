//! A lock that many readers or one writer can hold.

use lock_host::Setting;

use crate::mutex::{Mutex, ReadLock};

/// A lock that many readers or one writer can hold. Made by [`Client::rw_lock`](crate::Client::rw_lock).
///
/// [`read`](Self::read) and [`write`](Self::write) each return a lock, with the methods that acquire it. Options that are set here
/// apply to both, except that fairness applies to readers only: a writer can overtake nobody. [`ReadLock`] has an example, and says when not to use it.
///
/// Processes are served in order of arrival, and each serves up to 17 of its own waiters in a row (`chain` + 1). Neither side
/// starves. A reader therefore waits behind a waiting writer, even while others
/// read, unless it is [`barging`](crate::NamedLock::barging). A task or thread that acquires a second read lock can deadlock with such a
/// writer: pass the guard on, or share it (`Guard::share`).
///
/// A quorum (`redlock://`) has no readers: `read` locks fail with *unsupported*, and no request is sent.
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct RwLock {
    pub(crate) read: ReadLock,
    pub(crate) write: Mutex,
}

impl RwLock {
    /// The side of the readers.
    pub fn read(&self) -> ReadLock {
        self.read.clone()
    }

    /// The side of the writers. It excludes the mutex of the same name, unless the store keeps the two apart.
    pub fn write(&self) -> Mutex {
        self.write.clone()
    }

    lock_host::option_setters!(all);

    lock_host::option_setters!(each);

    lock_host::option_setters!(on_unavailable);

    lock_host::option_setters!(fairness);

    /// Fairness applies to readers only: a writer can overtake nobody.
    fn set(self, setting: Setting) -> Self {
        let write = if let Setting::Options(options) = &setting {
            self.write.options(options.clone().fair())
        } else if let Setting::Fairness(_) = &setting {
            self.write
        } else {
            self.write.set(setting.clone())
        };
        Self { read: self.read.set(setting), write }
    }
}

impl ReadLock {
    lock_host::option_setters!(fairness);
}
