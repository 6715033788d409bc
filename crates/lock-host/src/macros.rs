//! Methods and impls that are the same for the types of both facades, which Rust has no other way to share: what users
//! call has to be on the facade's own type.

/// The setters of [`LockOptions`](lock_core::LockOptions), for a tuple struct around a [`Lock`](crate::Lock) that has a
/// method `acquire`.
#[macro_export]
macro_rules! option_setters {
    () => {
        /// Sets all options at once, for instance from a configuration.
        pub fn options(mut self, options: ::lock_core::LockOptions) -> Self {
            self.0.replace(options);
            self
        }

        /// How long the store keeps the lease when nobody renews it: 100 ms to 365 days, 30 s if not set.
        ///
        /// The client renews the lease whatever the ttl is. If a holder dies, others wait until its ttl has passed.
        pub fn ttl(mut self, ttl: ::std::time::Duration) -> Self {
            self.0.try_set(|options| options.set_ttl(ttl));
            self
        }

        /// How long [`acquire`](Self::acquire) waits; without limit if not set.
        pub fn wait(mut self, wait: ::std::time::Duration) -> Self {
            self.0.set(|options| options.wait = Some(wait));
            self
        }

        /// Why the lock is held, shown to waiters and operators: at most 200 bytes.
        pub fn why(mut self, why: impl Into<String>) -> Self {
            self.0.set(|options| options.why = why.into());
            self
        }

        /// How long the lock is held at most, renewals included; then the guard is lost. No limit if not set.
        pub fn max_hold(mut self, max_hold: ::std::time::Duration) -> Self {
            self.0.set(|options| options.max_hold = Some(max_hold));
            self
        }
    };
}

/// The queries of a client about itself and its store, for a tuple struct around an `Arc` of [`Stations`](crate::Stations).
#[macro_export]
macro_rules! client_queries {
    () => {
        /// What the store can do.
        pub fn capabilities(&self) -> ::lock_core::Capabilities {
            self.backend().capabilities()
        }

        /// What operators should know about the store as this client found it on connecting, such as that it may drop
        /// held locks. Each is a sentence without secrets; usually there is none.
        pub fn warnings(&self) -> Vec<String> {
            self.backend().warnings()
        }

        /// How late renewals are sent. A machine or a store that is too slow for the ttl shows here before a lock is lost.
        pub fn keeper_lateness(&self) -> ::lock_core::Lateness {
            self.0.ports().renewals.lateness()
        }
    };
}

/// Makes a guard, a tuple struct around [`Held`](crate::Held), deref to its [`Proof`](crate::Proof).
#[macro_export]
macro_rules! deref_to_proof {
    ($guard:ty) => {
        impl ::std::ops::Deref for $guard {
            type Target = $crate::Proof;

            fn deref(&self) -> &$crate::Proof {
                &self.0
            }
        }
    };
}
