//! The shared guard, which both facades have in common.

/// A guard with clones, beside the guard that it is made of, with the facade's own part of the documentation.
#[macro_export]
macro_rules! shared_guard {
    (
        [$($async:tt)?] [$($await:tt)*]
        $guard:ident;
        $(#[$release:meta])* $(async)? fn release;
    ) => {
        /// A guard with clones: the lock is held until the last of them is dropped or released.
        ///
        #[doc = concat!("Made by [`", stringify!($guard), "::share`], and used like the [`", stringify!($guard), "`].")]
        /// All clones have the same fencing token, so the protected resource cannot tell them apart.
        ///
        #[doc = concat!(
            "A clone that waits in [`lost`](", stringify!($guard), "::lost) keeps the lock held as well. A [`watch`](",
            stringify!($guard), "::watch) does not: it ends with the last clone."
        )]
        ///
        /// It has no `detach`, because other clones would work on under a lock that somebody else has adopted. Detach the
        /// guard instead of sharing it.
        #[must_use = "the lock is released when the last clone is dropped"]
        #[derive(Debug)]
        pub struct SharedGuard<M = $crate::Exclusive>(::std::sync::Arc<$guard<M>>);

        impl<M> $guard<M> {
            /// Makes a guard that can be cloned, for instance to give one to each of several tasks or threads.
            pub fn share(self) -> SharedGuard<M> {
                SharedGuard(::std::sync::Arc::new(self))
            }
        }

        // Not derived: the clone of a guard needs no clone of its marker.
        impl<M> Clone for SharedGuard<M> {
            fn clone(&self) -> Self {
                Self(::std::sync::Arc::clone(&self.0))
            }
        }

        impl<M> SharedGuard<M> {
            /// Acquires the lock again, for a part of the work that needs it as well: a clone of this guard, if the lock is
            /// still held. Local and cheap; the store is not asked.
            ///
            /// # Errors
            /// `Lost`, with the reason.
            pub fn again(&self) -> Result<Self, ::lock_core::Lost> {
                self.check().map(|()| self.clone())
            }

            /// Gives up this clone. The last clone releases the lock and waits for the store's answer. Success means that no
            /// loss was detected. While other clones remain, the lock stays held, and nothing is sent to the store.
            ///
            /// # Errors
            #[doc = concat!(
                "`Lost` if the lock had already been lost. `Backend` from the last clone, as in [`", stringify!($guard), "::release`]."
            )]
            ///
            $(#[$release])*
            pub $($async)? fn release(self) -> Result<(), $crate::HoldError> {
                match self.last()? {
                    Some(guard) => guard.release()$($await)*,
                    None => Ok(()),
                }
            }

            /// The guard, if this is the last clone of it. A clone before the last one only tells whether the lock is held.
            fn last(self) -> Result<Option<$guard<M>>, ::lock_core::Lost> {
                let checked = self.check();
                match ::std::sync::Arc::into_inner(self.0) {
                    Some(guard) => Ok(Some(guard)),
                    None => checked.map(|()| None),
                }
            }
        }

        $crate::deref_guard!(SharedGuard => $guard<M>);
    };
}
