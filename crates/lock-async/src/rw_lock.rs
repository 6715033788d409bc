//! A lock that many readers or one writer can hold.

use lock_host::Setting;

use crate::mutex::{Mutex, ReadLock};

/// A lock that many readers or one writer can hold. Made by [`Client::rw_lock`](crate::Client::rw_lock).
///
/// [`read`](Self::read) and [`write`](Self::write) give a lock each, with the methods that acquire it. Options that are set here
/// are those of both, except that fairness is the readers': a writer has nobody to pass. [`ReadLock`] has an example, and says when not to use it.
///
/// Readers and writers are served first come, first served, except that a process may serve up to 16 of its own waiters in a
/// row (`chain(0)` switches that off), so neither side starves. So a reader waits behind a writer that waits, even while others
/// read, unless it is [`barging`](crate::NamedLock::barging). A task or thread that reads and acquires a second read then waits for
/// itself: pass the guard on, or share it (`Guard::share`).
///
/// A quorum (`redlock://`) has no readers; its `read` reports an error before anything is sent.
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

    /// Fairness is that of the readers: a writer has nobody to pass.
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
