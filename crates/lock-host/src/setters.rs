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

        /// Limits the number of requests of an acquire; without limit if not set. After the last one, it ends like a wait that timed out.
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

        /// Ends the wait when this token is cancelled, with the error `Cancelled`. It leaves nothing at the store. Locks that were acquired
        /// before stay acquired. A token that is already cancelled ends a call without a request.
        ///
        /// Another thread or task can end a wait in this way; it does not end work under the lock. In async code, dropping the future also ends a
        /// wait.
        pub fn cancelled_by(self, token: &$crate::CancelToken) -> Self {
            self.set($crate::Setting::CancelledBy(token.clone()))
        }
    };
    (all) => {
        /// Replaces all options that were set before, including the [token](Self::cancelled_by), for instance by those of a configuration.
        /// So call it first.
        pub fn options(self, options: $crate::LockOptions) -> Self {
            self.set($crate::Setting::Options(options))
        }
    };
    (on_unavailable) => {
        /// Sets what an acquire does while the store is unreachable: [`Fail`](::lock_core::OnUnavailable::Fail), which is the default, or
        /// [`Wait`](::lock_core::OnUnavailable::Wait). With `Fail`, it waits for other holders only, and returns the error of the store
        /// after an operation timeout (a sixth of the ttl, but at most a second) without service.
        ///
        /// A `try_acquire` waits for nothing: it returns the first error. Once the lock is held, this has no effect.
        pub fn on_unavailable(self, on_unavailable: ::lock_core::OnUnavailable) -> Self {
            self.set($crate::Setting::OnUnavailable(on_unavailable))
        }
    };
    (fairness) => {
        /// Overtakes waiters that cannot use what is free. If nothing is free, this queues like any other request.
        ///
        /// So a reader joins other readers although a writer waits, and a request for one permit overtakes one for many. While such
        /// requests continue, the overtaken waiters may starve; they keep their places. For an exclusive lock this is an error, because its
        /// first waiter can use whatever is free.
        ///
        /// Within one client, a barging reader joins the readers of that client at once. If the client does not read yet, the reader waits
        /// behind its earlier waiters, and overtakes only those of other clients. A request for permits also overtakes those of its own client,
        /// while fewer than 16 of them are at the store.
        pub fn barging(self) -> Self {
            self.set($crate::Setting::Fairness(::lock_core::Fairness::Barging))
        }

        /// Queues behind all earlier waiters, which is the default.
        pub fn fair(self) -> Self {
            self.set($crate::Setting::Fairness(::lock_core::Fairness::Fair))
        }
    };
}
