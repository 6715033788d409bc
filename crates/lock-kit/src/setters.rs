//! Options of what is made of mutexes. They are those of a mutex.

/// Sets the options of a type with a method `each`, which changes each mutex that it is made of.
macro_rules! mutex_setters {
    () => {
        /// Replaces all options, for instance by those of a configuration.
        pub fn options(self, options: ::lock_host::LockOptions) -> Self {
            self.each(|mutex| mutex.options(options.clone()))
        }

        /// Sets how long the store keeps a lease when nobody renews it, as [`Mutex::ttl`] does.
        pub fn ttl(self, ttl: ::std::time::Duration) -> Self {
            self.each(|mutex| mutex.ttl(ttl))
        }

        /// Sets how long an acquire waits in all; without limit if not set.
        pub fn wait(self, wait: ::std::time::Duration) -> Self {
            self.each(|mutex| mutex.wait(wait))
        }

        /// Sets how often an acquire asks the store for one lock, at most, as [`Mutex::attempts`] does.
        pub fn attempts(self, attempts: u32) -> Self {
            self.each(|mutex| mutex.attempts(attempts))
        }

        /// Passes those who came first where they have no use for what is free, as [`Mutex::barging`] does: never, for locks
        /// that are held alone.
        pub fn barging(self) -> Self {
            self.each(|mutex| mutex.barging())
        }

        /// Waits behind all who came first, which is the default.
        pub fn fair(self) -> Self {
            self.each(|mutex| mutex.fair())
        }

        /// Sets why the lock is held, as [`Mutex::why`] does.
        pub fn why(self, why: impl AsRef<str>) -> Self {
            self.each(|mutex| mutex.why(why.as_ref()))
        }

        /// Sets how long a lock is held at most, as [`Mutex::max_hold`] does.
        pub fn max_hold(self, max_hold: ::std::time::Duration) -> Self {
            self.each(|mutex| mutex.max_hold(max_hold))
        }
    };
}

pub(crate) use mutex_setters;
