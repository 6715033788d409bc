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

        /// Sets how long the store keeps the lease of a process that computes and dies, as [`Mutex::ttl`] does; 30 s if not set.
        /// Then another one computes.
        pub fn ttl(self, ttl: ::std::time::Duration) -> Self {
            self.set(|options| options.ttl(ttl))
        }

        /// Sets how long to wait for a value that another caller computes; without limit if not set.
        pub fn wait(self, wait: ::std::time::Duration) -> Self {
            self.set(|options| options.wait(wait))
        }

        /// Sets what a caller without a value does while the store of the locks is away, as [`Mutex::on_unavailable`] does: it gets the
        /// error, if not set.
        pub fn on_unavailable(self, on_unavailable: ::lock_core::OnUnavailable) -> Self {
            self.set(|options| options.on_unavailable(on_unavailable))
        }

        /// Sets how long the computation may take. Then its lease is lost, and another caller computes.
        pub fn at_most(self, at_most: ::std::time::Duration) -> Self {
            self.set(|options| options.max_hold(at_most))
        }

        /// Sets why the value is computed, as [`Mutex::why`] does.
        pub fn why(self, why: impl Into<String>) -> Self {
            self.set(|options| options.why(why))
        }

        fn set(mut self, change: impl FnOnce(::lock_host::LockOptions) -> ::lock_host::LockOptions) -> Self {
            self.plan.options = change(::std::mem::take(&mut self.plan.options));
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
