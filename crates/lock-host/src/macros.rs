//! Methods and impls that are the same for the types of both facades, which Rust has no other way to share: what users
//! call has to be on the facade's own type.

/// Sets the options of a tuple struct around a [`Lock`](crate::Lock): all at once, or each by its setter.
#[macro_export]
macro_rules! option_setters {
    () => {
        /// Replaces all options, for instance by those of a configuration.
        pub fn options(mut self, options: ::lock_core::LockOptions) -> Self {
            self.0.replace(options);
            self
        }

        ::lock_core::option_setters!();

        fn set(
            mut self,
            change: impl FnOnce(&mut ::lock_core::LockOptions) -> Result<(), ::lock_core::Invalid>,
        ) -> Self {
            self.0.change(change);
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

/// Makes a guard, which is a tuple struct, deref to a target that its field derefs to.
#[macro_export]
macro_rules! deref_guard {
    ($guard:ty => $target:ty) => {
        impl ::std::ops::Deref for $guard {
            type Target = $target;

            fn deref(&self) -> &$target {
                &self.0
            }
        }
    };
}
