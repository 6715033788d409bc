//! Options of what is made of mutexes. They are those of a mutex.

/// Sets the options of a type with a method `each`, which changes each mutex that it is made of.
macro_rules! mutex_setters {
    () => {
        $crate::setters::lock_setters!();

        /// Sets what an acquire does while the store is away, as [`Mutex::on_unavailable`] does.
        pub fn on_unavailable(self, on_unavailable: ::lock_core::OnUnavailable) -> Self {
            self.each(|mutex| mutex.on_unavailable(on_unavailable))
        }
    };
}

/// The same, for a type that decides what to do while the store is away.
macro_rules! lock_setters {
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

/// Sets the options of a job, which has a plan.
macro_rules! job_setters {
    () => {
        /// Runs once for this slot over all machines, instead of whenever it is called and does not run elsewhere.
        ///
        /// The store remembers the slot in a lock of its own, whose name is that of the job, `@` and the slot. No machine's clock
        /// has to be right for that.
        pub fn slot(mut self, slot: $crate::Slot) -> Self {
            self.plan.slot = Some(slot);
            self
        }

        /// Sets for how long slots are remembered; 7 days if not set. Older slots are refused. Clocks may differ by a day: slots
        /// are remembered for so much longer.
        pub fn retain(mut self, retain: ::std::time::Duration) -> Self {
            self.plan.retain = retain;
            self
        }

        /// Lets another machine run the slot if the run ends without a result: its process dies or loses the lock, or the
        /// work panics. Then a slot may be run more than once, and partly. That is also so if the store does not confirm the
        /// mark when the work is done. Without this, such a slot counts as run.
        ///
        /// Work that returns an error has a result: with [`run`](Self::run), its slot counts as run, with or without this. To run it
        /// again, use [`try_run`](Self::try_run).
        pub fn retry_after_crash(mut self) -> Self {
            self.plan.crashed = $crate::job::Crashed::HasNotRun;
            self
        }

        /// Says that the schedule has a slot each time this much time has passed, in whole seconds. Then the run of a slot says which
        /// slots before it [nobody has run](crate::JobRun::missed), which costs two requests before the work begins, and one more for
        /// each such slot. They are counted from the first slot that the job has run, so a new job has missed none.
        pub fn every(mut self, span: ::std::time::Duration) -> Self {
            self.plan.earlier = Some($crate::Earlier::Every(span));
            self
        }

        /// The same as [`every`](Self::every) for a schedule whose slots are not evenly spread: these are some of the slots before the
        /// one that is to run, such as the last one. A slot in the list that nobody has run is only reported if none after it has run.
        pub fn previous(mut self, slots: impl IntoIterator<Item = $crate::Slot>) -> Self {
            self.plan.earlier = Some($crate::Earlier::Slots(slots.into_iter().collect()));
            self
        }

        /// Lets no run begin for this time after one has begun, even if the work is done sooner. This is for schedules without
        /// slots, on machines whose clocks differ by less than that. The time counts as well if
        /// the work panics or is dropped, or the client is closed. If its process or machine crashes, the lock is free when its ttl is
        /// over; so for a time that counts then as well, set a `ttl` that is as long.
        pub fn at_least(mut self, at_least: ::std::time::Duration) -> Self {
            self.plan.at_least = at_least;
            self
        }

        /// Sets how long the work may take. Then the lock of the job is lost, and others may run.
        pub fn at_most(self, at_most: ::std::time::Duration) -> Self {
            self.set(|options| options.max_hold(at_most))
        }

        /// Sets how long to wait for a run that is under way; not at all if not set. A slot that was taken is not waited for.
        pub fn wait(self, wait: ::std::time::Duration) -> Self {
            self.set(|options| options.wait(wait))
        }

        /// Sets what a job with a [`wait`](Self::wait) does while the store is away, as [`Mutex::on_unavailable`] does: it returns the
        /// error, if not set. The mark of a slot is not waited for.
        pub fn on_unavailable(self, on_unavailable: ::lock_core::OnUnavailable) -> Self {
            self.set(|options| options.on_unavailable(on_unavailable))
        }

        /// Sets how long the store keeps the lock of the job when nobody renews it, as [`Mutex::ttl`] does.
        pub fn ttl(self, ttl: ::std::time::Duration) -> Self {
            self.set(|options| options.ttl(ttl))
        }

        /// Sets why the job runs, as [`Mutex::why`] does.
        pub fn why(self, why: impl Into<String>) -> Self {
            self.set(|options| options.why(why))
        }

        fn set(mut self, change: impl FnOnce(::lock_host::LockOptions) -> ::lock_host::LockOptions) -> Self {
            self.plan.options = change(::std::mem::take(&mut self.plan.options));
            self
        }

        fn mutex(&self, wanted: $crate::job::Wanted) -> Mutex {
            self.client.mutex(wanted.name).options(wanted.options)
        }
    };
}

pub(crate) use {job_setters, lock_setters, mutex_setters};
