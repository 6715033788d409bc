//! Methods and impls that are the same for the types of both facades, which Rust has no other way to share: what users
//! call has to be on the facade's own type.

/// The methods that clients of both facades have, for a tuple struct around an `Arc` of [`Stations`](crate::Stations).
#[macro_export]
macro_rules! client_methods {
    ($backend:ty) => {
        /// Begins to configure a client.
        pub fn builder(backend: ::std::sync::Arc<$backend>) -> Builder {
            Builder::new(backend)
        }

        /// A lock by its name, which can be text or a [`LockName`](lock_core::LockName). Text is checked when the lock is
        /// acquired.
        pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
            NamedLock($crate::Lock::new(&self.0, name.as_ref()))
        }

        /// A read-write lock by its name. Its write side is the [`mutex`](Self::mutex) of the same name, unless the store keeps the two
        /// [apart](lock_core::WriteSide): then a name is used as one or the other.
        /// [`ReadLock`](crate::ReadLock) has an example.
        pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
            let name = name.as_ref();
            RwLock {
                read: NamedLock($crate::Lock::shared(&self.0, name)),
                write: NamedLock($crate::Lock::writing(&self.0, name)),
            }
        }

        /// A semaphore by its name, with `limit` permits, from 1 to 2,147,483,646. All who use the name have to give the same
        /// limit, unless it was changed with `set_limit`, and nobody can use it as a lock meanwhile: they get an error of the kind
        /// [`OtherKind`](lock_core::ErrorKind::OtherKind). Name and limit are checked when permits are acquired.
        /// [`Semaphore`](crate::Semaphore) has an example.
        pub fn semaphore(&self, name: impl AsRef<str>, limit: u32) -> Semaphore {
            NamedLock($crate::Lock::permits(&self.0, name.as_ref(), limit))
        }

        /// A latch by its name, which can be text or a [`LockName`](lock_core::LockName). Text is checked with the first
        /// request. It has nothing in common with a lock of the same name.
        pub fn latch(&self, name: impl AsRef<str>) -> Latch {
            Latch($crate::NamedLatch::new(&self.0, name.as_ref()))
        }

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

        fn backend(&self) -> &$backend {
            &*self.0.ports().driver.backend
        }
    };
}

/// What can be asked about a lock before it is acquired, for a tuple struct around a [`Lock`](crate::Lock).
#[macro_export]
macro_rules! lock_queries {
    () => {
        /// Why this client's waiters for the lock are still waiting, if the store fails: the error of the latest request.
        /// `None` while the store answers, and if there are no waiters.
        ///
        /// A wait outlasts transient errors, and some of them end only when an operator acts: a full disk, a primary that
        /// became a replica. Check this from time to time during long waits, and show it.
        pub fn store_error(&self) -> Option<::lock_core::BackendError> {
            self.0.trouble()
        }

        /// The lock as a part of something larger.
        #[doc(hidden)]
        pub fn member(&self) -> Result<$crate::Member, ::lock_core::Invalid> {
            self.0.member(|driver, name| ::lock_core::Backend::locate(&*driver.backend, name))
        }

        /// The client and the name of the lock.
        #[doc(hidden)]
        pub fn identity(&self) -> Result<($crate::ClientId, ::lock_core::LockName), ::lock_core::Invalid> {
            self.0.identity()
        }

        /// Reports to the observers that the caller goes on with a lock of this process.
        #[doc(hidden)]
        pub fn degraded(&self, waited: ::std::time::Duration, error: &::lock_core::BackendError) {
            self.0.degraded(waited, error);
        }

        /// The name of the lock.
        ///
        /// # Errors
        /// `Invalid` for an invalid name, which no acquire accepts.
        pub fn name(&self) -> Result<&::lock_core::LockName, ::lock_core::Invalid> {
            self.0.name()
        }

        /// Whether this is a guard of this lock, acquired through the same client or a clone of it.
        pub fn is_held_by(&self, guard: &Guard<M>) -> bool {
            self.0.is_held_by(&guard.0)
        }
    };
}

/// Locks of all kinds, each by its name, with the facade's examples of two of them and what [`acquiring`](crate::acquiring) takes; and what the
/// guards of a semaphore know beyond a hold.
#[macro_export]
macro_rules! kinds {
    ($(#[$read:meta])* ReadLock $(#[$permits:meta])* Semaphore $($acquiring:tt)*) => {
        /// A lock by its name, and how to hold it: a [`Mutex`], a [`ReadLock`] or a [`Semaphore`].
        ///
        /// No request is sent before [`acquire`](Self::acquire) or another method that acquires, which also reports an invalid
        /// name or option. It can be acquired any number of times.
        #[derive(Debug)]
        #[must_use = "a lock does nothing until it is acquired"]
        pub struct NamedLock<M = $crate::Exclusive>(pub(crate) $crate::Lock<Driver, M>);

        /// A lock with one holder at a time, and the write side of the [`RwLock`] of its name. Made by [`Client::mutex`](crate::Client::mutex).
        pub type Mutex = NamedLock<$crate::Exclusive>;

        /// The side of the readers of an [`RwLock`].
        ///
        /// Readers of one client share a lease, so a reader that joins others costs no request while the store has said within
        /// 20 ms that nobody waits. The lease has the ttl of its first reader.
        ///
        $(#[$read])*
        ///
        /// # When not to use it
        /// If most holders write, or hold for a moment only, a [`Mutex`] is simpler and just as fast: a reader costs requests to the
        /// store as well. A reader that only needs one consistent snapshot is better served by the database's own.
        pub type ReadLock = NamedLock<$crate::Shared>;

        /// A lock with several permits, which as many holders can have at a time. Made by
        /// [`Client::semaphore`](crate::Client::semaphore).
        ///
        /// Each permit is a slot with a number, which no other living holder has, and with fencing tokens of its own. The permits of
        /// a holder that dies come back when its ttl is over. Requests are served in the order in which they came, so a large one is
        /// not passed by small ones, unless those are [`barging`](NamedLock::barging). A quorum (`redlock://`) has no semaphores,
        /// and says so before anything is sent.
        ///
        $(#[$permits])*
        ///
        /// # When not to use it
        /// A semaphore limits how many hold at a time, and not how often: for requests per second, use a rate limiter. Permits within
        /// one process are cheaper from a semaphore of that process.
        pub type Semaphore = NamedLock<$crate::Permits>;

        $crate::acquiring! { $($acquiring)* }

        impl<M> NamedLock<M> {
            $crate::option_setters!(all);

            $crate::option_setters!(each);

            $crate::option_setters!(on_unavailable);

            #[doc(hidden)]
            pub fn set(mut self, setting: $crate::Setting) -> Self {
                self.0.set(setting);
                self
            }

            $crate::lock_queries!();
        }

        impl ReadLock {
            $crate::option_setters!(fairness);
        }

        impl Semaphore {
            $crate::option_setters!(fairness);
        }

        // Not derived: the clone of a lock needs no clone of its marker.
        impl<M> Clone for NamedLock<M> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        /// A lock that many readers or one writer can hold. Made by [`Client::rw_lock`](crate::Client::rw_lock).
        ///
        /// [`read`](Self::read) and [`write`](Self::write) give a lock each, with the methods that acquire it. Options that are set here
        /// are those of both, except that fairness is the readers': a writer has nobody to pass. [`ReadLock`] has an example, and says when not to use it.
        ///
        /// Readers and writers are served first come, first served, except that a process may serve up to 16 of its own waiters in a
        /// row (`chain(0)` switches that off), so neither side starves. So a reader waits behind a writer that waits, even while others
        /// read, unless it is [`barging`](NamedLock::barging). A task or thread that reads and acquires a second read then waits for
        /// itself: pass the guard on, or share it (`Guard::share`).
        ///
        /// A quorum (`redlock://`) has no readers; its `read` reports an error before anything is sent.
        #[derive(Clone, Debug)]
        #[must_use = "a lock does nothing until it is acquired"]
        pub struct RwLock {
            pub(crate) read: ReadLock,
            pub(crate) write: Mutex,
        }

        impl RwLock {
            /// The side of the readers.
            pub fn read(&self) -> ReadLock {
                self.read.clone()
            }

            /// The side of the writers. It excludes the mutex of the same name, unless the store keeps the two apart.
            pub fn write(&self) -> Mutex {
                self.write.clone()
            }

            $crate::option_setters!(all);

            $crate::option_setters!(each);

            $crate::option_setters!(on_unavailable);

            $crate::option_setters!(fairness);

            /// Fairness is that of the readers: a writer has nobody to pass.
            fn set(self, setting: $crate::Setting) -> Self {
                let write = if let $crate::Setting::Options(options) = &setting {
                    self.write.options(options.clone().fair())
                } else if let $crate::Setting::Fairness(_) = &setting {
                    self.write
                } else {
                    self.write.set(setting.clone())
                };
                Self { read: self.read.set(setting), write }
            }
        }

        impl PermitGuard {
            /// The number of the permit, or the lowest of several: from 0 to one less than the limit. No other living holder has it.
            pub fn slot(&self) -> u32 {
                self.slots().first().copied().unwrap_or_default()
            }

            /// The numbers of all permits, ascending.
            pub fn slots(&self) -> &[u32] {
                self.0.slots()
            }

            /// The permits with their fencing tokens. The tokens of a slot rise, so that what the slot stands for can refuse an
            /// earlier holder. Tokens of different slots say nothing about each other.
            pub fn tokens(&self) -> impl Iterator<Item = (u32, ::lock_core::FencingToken)> {
                self.0.tokens()
            }

            /// The same, as what raises the fence of each slot before anything of it is read.
            pub fn write_tokens(&self) -> impl Iterator<Item = (u32, ::lock_core::WriteToken)> {
                self.0.tokens().map(|(slot, token)| (slot, ::lock_core::WriteToken::of_writer(token)))
            }
        }
    };
}
