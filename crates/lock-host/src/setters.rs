//! The setters of options, for every type that has options.

/// Setters for every type that has options: it has a method `set`, which takes a [`Setting`](crate::Setting). There is one group that every kind of
/// lock has, and one for each setter that means nothing to some kinds.
#[macro_export]
macro_rules! option_setters {
    (each) => {
        $crate::option_setters!(each "Sets how long an acquire waits; without limit if not set.");
    };
    (each $wait:literal) => {
        /// Sets how long the store keeps the lease when nobody renews it: 100 ms to 365 days, 30 s if not set.
        ///
        /// The client renews the lease whatever the ttl is. If a holder dies, others wait until its ttl has passed.
        pub fn ttl(self, ttl: ::std::time::Duration) -> Self {
            self.set($crate::Setting::Ttl(ttl))
        }

        #[doc = $wait]
        pub fn wait(self, wait: ::std::time::Duration) -> Self {
            self.set($crate::Setting::Wait(wait))
        }

        /// Sets how often an acquire asks the store, at most; without limit if not set. The end is that of a wait that is over.
        ///
        /// The pauses between requests are the client's: they grow, and a store with a queue is asked every few seconds
        /// only. While another guard of this client holds the lock, the store is not asked. So limit the time with
        /// [`wait`](Self::wait), and the requests with this.
        ///
        /// ```
        /// # use lock_host as leasehold;
        /// use std::time::Duration;
        ///
        /// let options = leasehold::LockOptions::default().wait(Duration::from_secs(30)).max_requests(3);
        /// assert_eq!(options.max_requests.map(|most| most.get()), Some(3));
        /// ```
        pub fn max_requests(self, most: u32) -> Self {
            self.set($crate::Setting::MaxRequests(most))
        }

        /// Sets why the lock is held, shown to waiters and operators: one line of at most 200 bytes.
        pub fn why(self, why: impl Into<String>) -> Self {
            self.set($crate::Setting::Why(why.into()))
        }

        /// Sets how long the lock is held at most, renewals included; then the guard is lost. No limit if not set.
        pub fn max_hold(self, max_hold: ::std::time::Duration) -> Self {
            self.set($crate::Setting::MaxHold(max_hold))
        }

        /// Ends the wait when this token is cancelled, with the error `Cancelled`. It leaves nothing at the store. What was acquired
        /// before stays acquired. A token that is already cancelled ends a call without a request.
        ///
        /// This is how another thread or task ends a wait; it does not end work under the lock. In async code, dropping the future ends a
        /// wait as well.
        pub fn cancelled_by(self, token: &$crate::CancelToken) -> Self {
            self.set($crate::Setting::CancelledBy(token.clone()))
        }
    };
    (all) => {
        /// Replaces all options, for instance by those of a configuration: also those set before, and the
        /// [token](Self::cancelled_by). So call it first.
        pub fn options(self, options: $crate::LockOptions) -> Self {
            self.set($crate::Setting::Options(options))
        }
    };
    (on_unavailable) => {
        /// Sets what an acquire does while the store is away: [`Fail`](::lock_core::OnUnavailable::Fail), which is the default, or
        /// [`Wait`](::lock_core::OnUnavailable::Wait). With `Fail`, the wait is for other holders only, and the error of the store
        /// comes when it has not served this lock for an operation timeout (a sixth of the ttl, but at most a second).
        ///
        /// A `try_acquire` waits for nothing, so the first error is its result. Once the lock is held, this has no effect.
        pub fn on_unavailable(self, on_unavailable: ::lock_core::OnUnavailable) -> Self {
            self.set($crate::Setting::OnUnavailable(on_unavailable))
        }
    };
    (fairness) => {
        /// Takes what is free although others came first, if they have no use for it. If nothing is free, this waits in line
        /// like the others.
        ///
        /// So a reader joins other readers although a writer waits, and a request for one permit passes one for many. While such
        /// requests continue, the waiters that are passed may never be served. A lock that is held alone refuses this: its first waiter can
        /// always use what is free.
        pub fn barging(self) -> Self {
            self.set($crate::Setting::Fairness(::lock_core::Fairness::Barging))
        }

        /// Waits behind all earlier waiters, which is the default.
        pub fn fair(self) -> Self {
            self.set($crate::Setting::Fairness(::lock_core::Fairness::Fair))
        }
    };
}
