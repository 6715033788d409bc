//! The options of single flight, for both facades.

/// Sets the options of a type with a plan.
macro_rules! single_flight_setters {
    () => {
        /// Sets for how long a value is cached; 60 s if not set.
        pub fn value_ttl(mut self, value_ttl: ::std::time::Duration) -> Self {
            self.plan.value_ttl = value_ttl;
            self
        }

        /// Sets for how long a value is cached that says that there is none (see [`Cache::is_absent`]); as long as any other value
        /// if not set. Usually shorter, because what does not exist may be created.
        pub fn absent_ttl(mut self, absent_ttl: ::std::time::Duration) -> Self {
            self.plan.absent_ttl = Some(absent_ttl);
            self
        }

        /// Shortens each ttl at random, by so many hundredths at most, so that values which were cached at the same time do not expire
        /// at the same time: 0 to 100, and 10 if not set.
        pub fn jitter_percent(mut self, jitter_percent: u8) -> Self {
            self.plan.jitter_percent = jitter_percent;
            self
        }

        /// Lets others use an expired value for so long while one computes it anew; not at all if not set.
        ///
        /// The cache keeps each value for so much longer, and has to say for how long it will still keep it: see
        /// [`Found::left`](crate::Found::left).
        pub fn stale_for(mut self, stale_for: ::std::time::Duration) -> Self {
            self.plan.stale_for = stale_for;
            self
        }

        ::lock_host::option_setters!(all);

        ::lock_host::option_setters!(each "Sets how long to wait for a value that another caller computes; without limit if not set.");

        ::lock_host::option_setters!(on_unavailable);

        fn set(mut self, setting: ::lock_host::Setting) -> Self {
            self.plan.options.apply(setting);
            self
        }

        fn mutex(&self, options: ::lock_host::LockOptions) -> Mutex {
            self.client.mutex(self.plan.name()).options(options)
        }

        /// Refuses what cannot be done. The wait begins.
        fn begin(&self) -> Result<$crate::single_flight::Patience, ::lock_core::AcquireError> {
            self.plan.check()?;
            let lock = self.mutex(self.plan.options.clone()).member()?;
            Ok($crate::single_flight::Patience::of(lock))
        }
    };
}

pub(crate) use single_flight_setters;
