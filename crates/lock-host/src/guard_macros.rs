//! The guards of both facades, and what is made of them, as far as it neither waits nor asks the store.

/// Makes a guard, which is a tuple struct, deref to a target that its field derefs to.
#[macro_export]
macro_rules! deref_guard {
    ($guard:ident => $target:ty) => {
        impl<M> ::std::ops::Deref for $guard<M> {
            type Target = $target;

            fn deref(&self) -> &$target {
                &self.0
            }
        }
    };
}

/// The guards of all kinds of locks, and how they change, with the facade's own part of the documentation. `async` and `.await`
/// are passed in, or nothing in their place. The facade adds what else asks the store, and two functions: `ask` sends a request, and
/// `change` asks for a hold to go on in another mode.
#[macro_export]
macro_rules! guards {
    (
        [$($async:tt)?] [$($await:tt)*]
        $(#[$docs:meta])* struct $guard:ident;
        $(#[$change:meta])* $(async)? fn change;
        $(#[$detach:meta])* $(async)? fn detach;
        $(#[$verify:meta])* $(async)? fn verify;
        $(#[$renew:meta])* $(async)? fn renew;
        $(#[$release:meta])* $(async)? fn release;
        $(#[$release_keeping:meta])* $(async)? fn release_keeping;
    ) => {
        $(#[$docs])*
        #[must_use = "the lock is released when the guard is dropped"]
        #[derive(Debug)]
        pub struct $guard<M = $crate::Exclusive>(pub(crate) $crate::Held<Driver, M>);

        /// A guard of a [`ReadLock`](crate::ReadLock). Its fencing token says that what is read is not older than that; a resource must
        /// not record it as the token of a write.
        pub type ReadGuard = $guard<$crate::Shared>;

        /// A guard of a [`Semaphore`](crate::Semaphore).
        pub type PermitGuard = $guard<$crate::Permits>;

        $crate::deref_guard!($guard => $crate::Proof);

        impl<M> $guard<M> {
            /// Lets go of the lock without releasing it, and returns the ticket with which another task, thread or process can go on
            /// with it: see [`adopt`](crate::NamedLock::adopt). The lease is renewed once before, so that nearly all of its ttl is
            /// left; a ticket that nobody adopts ends with that.
            ///
            /// Nobody else gets the lock in between. What the guard wrote, or still writes, has a lower token than the one who
            /// adopts.
            ///
            /// # Errors
            /// The guard as it was, with the reason: the hold was lost, the store could not renew it or cannot do it, or other guards of
            /// this client read under the same lease.
            ///
            $(#[$detach])*
            pub $($async)? fn detach(self) -> Result<::lock_core::Ticket, $crate::ChangeError<Self>> {
                let renewed = match self.0.can_be_adopted() {
                    Ok(()) => self.renew()$($await)*,
                    Err(error) => Err(error),
                };
                self.0.detached(renewed, Self)
            }

            /// Asks the store whether the lock is still held under this grant.
            ///
            /// # Errors
            /// `Lost` if it is not held any more, `Backend` if the store did not answer.
            ///
            $(#[$verify])*
            pub $($async)? fn verify(&self) -> Result<(), $crate::HoldError> {
                let inquiry = self.0.inquire()?;
                let (ports, lease, within) = (inquiry.ports(), inquiry.lease(), inquiry.within());
                let (name, token) = (&lease.name, lease.tokens.high());
                let fenced = ask(ports, name, ::lock_core::Operation::Fence, |store| store.fence(lease, within))$($await)*?;
                if let ::lock_core::Fenced::Acknowledged = fenced {
                    return Ok(self.check()?);
                }
                if !inquiry.may_know_by_whom() {
                    return Ok(inquiry.gone(None)?);
                }
                let look = ::lock_core::Operation::Inspect;
                let by = ask(ports, name, look, |store| store.revoked_by(name, token, within))$($await)*;
                Ok(inquiry.gone(by.ok().flatten())?)
            }

            /// Renews the lease now instead of at the next regular renewal. A lease that another client handed over may have
            /// little time left.
            ///
            /// # Errors
            /// `Lost` if it is no longer held, `Backend` if the store did not renew it; the regular renewals continue.
            ///
            $(#[$renew])*
            pub $($async)? fn renew(&self) -> Result<(), $crate::HoldError> {
                let inquiry = self.0.inquire()?;
                let (name, leases, within) = (&inquiry.lease().name, inquiry.leases(), inquiry.within());
                let renewal = ask(inquiry.ports(), name, ::lock_core::Operation::Renew, |store| store.renew(leases, within));
                let answers = renewal$($await)*?;
                Ok(inquiry.renewed(answers)?)
            }

            /// Releases the lock and waits for the store's answer. Success means that no loss was detected: a release that is
            /// repeated after a broken connection and finds nothing counts as done, even if the lock was broken meanwhile.
            ///
            /// # Errors
            /// `Lost` if the lock had already been lost, also to `max_hold`: part of the work may have been done without it.
            /// `Backend` if the store did not confirm the release; the client repeats it in the background until the lease
            /// ends.
            ///
            $(#[$release])*
            pub $($async)? fn release(self) -> Result<(), $crate::HoldError> {
                let ended = end(self.0.site(), ::lock_core::station::Leaving::now(self.0.turn()))$($await)*;
                self.0.ended(ended)
            }
        }

        impl $guard<$crate::Exclusive> {
            /// The token with which this holder raises a fence before it reads what the lock protects. Its number is that of
            /// [`fencing_token`](lock_host::Proof::fencing_token). A guard of a reader has no such token: if a reader raised a fence, it
            /// would shut out the other readers.
            pub fn write_token(&self) -> ::lock_core::WriteToken {
                ::lock_core::WriteToken::of_writer(self.fencing_token())
            }

            /// Releases the lock, but lets nobody have it for this time: for what must not happen again so soon. Success means that no
            /// loss was detected, and that the store keeps the lock.
            ///
            /// The store ends that time by itself, whatever happens to this client, and then hands the lock over. Waiters of this
            /// client wait as well. Nobody can renew or end it early, except an operator. A time that the store has not confirmed may
            /// be missed: the lock is then free when its ttl is over.
            ///
            /// # Errors
            /// Those of [`release`](Self::release), and `Unsupported` if the store cannot keep a lock (`redlock://`): then the guard is
            /// dropped, which releases the lock at once. To find out before, look at the
            /// [`abilities`](lock_core::Capabilities::abilities) of the store. If an earlier change of the hold failed with an unknown
            /// outcome, the lock may be free at once.
            ///
            $(#[$release_keeping])*
            pub $($async)? fn release_keeping(self, time: ::std::time::Duration) -> Result<(), $crate::HoldError> {
                let ended = end(self.0.site(), self.0.keeping(time)?)$($await)*;
                self.0.ended(ended)
            }

            /// From now on, nobody else may have the lock for at least this time, however this guard is released: by a call, dropped,
            /// also by a panic, or with its client. The last call counts, so no time takes that back. A lease that expires or is broken
            /// ends this as well, and so do [`downgrade`](Self::downgrade) and a ticket. After a crash, the lock is free when its ttl
            /// ends. To cover that as well, acquire it with a `ttl` that is as long.
            ///
            /// # Errors
            /// `Unsupported` if the store cannot keep a released lock.
            pub fn keep_at_least(&self, time: ::std::time::Duration) -> Result<(), ::lock_core::BackendError> {
                self.0.keep_at_least(time)
            }

            /// Continues as a reader, in one step: no other writer gets in between, and it never waits for another holder. Other readers of
            /// an [`RwLock`](crate::RwLock) of this name can then read as well.
            ///
            /// # Errors
            /// The guard as it was, with the reason: the hold was lost, or the store failed or cannot do it.
            ///
            $(#[$change])*
            pub $($async)? fn downgrade(self) -> Result<ReadGuard, $crate::ChangeError<Self>> {
                let verdict = change(&self.0, ::lock_core::Mode::Shared)$($await)*;
                self.0.changed(verdict, Self).map($guard)
            }
        }

        impl $guard<$crate::Shared> {
            /// Continues as the writer, in one step, if nobody else reads. Passes waiting writers. There is no
            /// upgrade that waits, because two of them would wait for each other.
            ///
            /// Then raise the fence to [`write_token`](Self::write_token), and read again what the writes are based on: until it is
            /// raised, an earlier writer that was paused may still write.
            ///
            /// # Errors
            /// The guard as it was, with the reason: others read as well, the hold was lost, or the store failed or cannot do it.
            ///
            $(#[$change])*
            pub $($async)? fn try_upgrade(self) -> Result<$guard, $crate::ChangeError<Self>> {
                let verdict = change(&self.0, ::lock_core::Mode::Exclusive)$($await)*;
                self.0.changed(verdict, Self).map($guard)
            }
        }

        impl $guard<$crate::Permits> {
            /// Gives back `count` permits, those with the highest numbers, and keeps the others under new tokens. To give back all
            /// of them, [`release`](Self::release) the guard.
            ///
            /// # Errors
            /// The guard as it was, with the reason: `Invalid` for none or all of the permits; the hold was lost, or the store failed
            /// or cannot do it.
            ///
            $(#[$change])*
            pub $($async)? fn give_back(self, count: u32) -> Result<Self, $crate::ChangeError<Self>> {
                let verdict = match self.0.without(count) {
                    Ok(mode) => change(&self.0, mode)$($await)*,
                    Err(refusal) => Some(Err(refusal)),
                };
                self.0.changed(verdict, Self).map(Self)
            }
        }
    };
}

/// The watch of a hold, and how a guard makes one, with the facade's documentation of that. The facade adds how it waits.
#[macro_export]
macro_rules! loss_watch {
    ($(#[$docs:meta])* $guard:ident) => {
        impl<M> $guard<M> {
            $(#[$docs])*
            pub fn watch(&self) -> LossWatch {
                LossWatch(self.0.downgrade())
            }
        }

        /// Waits for the loss of a hold, and does not keep the lock.
        #[doc = concat!("Made by [`", stringify!($guard), "::watch`](crate::", stringify!($guard), "::watch).")]
        ///
        /// It keeps neither the lock nor the client alive, so it can be kept for any time, and cloned into any task or thread.
        #[derive(Clone, Debug)]
        pub struct LossWatch(pub(crate) $crate::WeakHeld<Driver>);

        impl LossWatch {
            /// Whether the hold has ended: it was lost, or its guard was dropped or is being released.
            pub fn has_ended(&self) -> bool {
                self.0.has_ended()
            }
        }
    };
}
