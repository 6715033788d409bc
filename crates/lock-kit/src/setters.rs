//! The options of jobs, for both facades.

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
            self.plan.earlier = Some($crate::earlier::Earlier::Every(span));
            self
        }

        /// The same as [`every`](Self::every) for a schedule whose slots are not evenly spread: these are some of the slots before the
        /// one that is to run, such as the last one. A slot in the list that nobody has run is only reported if none after it has run.
        pub fn previous(mut self, slots: impl IntoIterator<Item = $crate::Slot>) -> Self {
            self.plan.earlier = Some($crate::earlier::Earlier::Slots(slots.into_iter().collect()));
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

        ::lock_host::option_setters!(all);

        ::lock_host::option_setters!(
            each "Sets how long to wait for a run that is under way; not at all if not set. A slot that was taken is not waited for."
        );

        ::lock_host::option_setters!(on_unavailable);

        fn set(mut self, setting: ::lock_host::Setting) -> Self {
            self.plan.options.apply(setting);
            self
        }

        fn mutex(&self, wanted: $crate::job::Wanted) -> Mutex {
            self.client.mutex(wanted.name).options(wanted.options)
        }
    };
}

pub(crate) use job_setters;
