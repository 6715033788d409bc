//! How locks of both facades are acquired, and what a semaphore can do beyond that, which is the same but for `async` and
//! `.await`.

/// The methods that acquire, with the facade's own part of the documentation. `async` and `.await` are passed in, or nothing in
/// their place. The facade adds a function `verdict`, which waits for the verdict on a turn, and `ask_limit`, which sends a request
/// about a limit.
#[macro_export]
macro_rules! acquiring {
    (
        [$($async:tt)?] [$($await:tt)*]
        $(#[$acquire:meta])* $(async)? fn acquire;
        $(#[$try_acquire:meta])* $(async)? fn try_acquire;
        $(#[$try_acquire_or_holder:meta])* $(async)? fn try_acquire_or_holder;
        $(#[$adopt:meta])* $(async)? fn adopt;
    ) => {
        impl<M> NamedLock<M> {
            /// Waits for the lock.
            ///
            /// # Errors
            /// `Invalid` for an invalid name or option; `TimedOut` when the wait is over; `Forgotten` if the store lost its
            /// memory; `Backend` for errors that are permanent, or last for an operation timeout (with
            /// [`OnUnavailable::Wait`](lock_core::OnUnavailable::Wait), that outlast the wait); `Closed` if this client was closed;
            /// `Cancelled` if its [token](Self::cancelled_by) was cancelled first.
            ///
            $(#[$acquire])*
            pub $($async)? fn acquire(&self) -> Result<Guard<M>, ::lock_core::AcquireError> {
                let asking = self.0.ask()?;
                asking.waited(take_turn(&asking)$($await)*).map(Guard)
            }

            /// Takes the lock if it is free; `None` if it is held. [`try_acquire_or_holder`](Self::try_acquire_or_holder) also
            /// says who holds it.
            ///
            /// # Errors
            /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
            ///
            $(#[$try_acquire])*
            pub $($async)? fn try_acquire(&self) -> Result<Option<Guard<M>>, ::lock_core::AcquireError> {
                ::lock_core::TryAcquireError::unless_busy(self.try_acquire_or_holder()$($await)*)
            }

            /// Takes the lock if it is free, and otherwise says who holds it.
            ///
            /// # Errors
            /// `Busy` names the holder of a lock that is not free, if it is known. `Failed` as [`try_acquire`](Self::try_acquire).
            ///
            $(#[$try_acquire_or_holder])*
            pub $($async)? fn try_acquire_or_holder(&self) -> Result<Guard<M>, ::lock_core::TryAcquireError> {
                let asking = self.0.ask()?.without_waiting();
                asking.tried(take_turn(&asking)$($await)*.map(Guard))
            }

            /// Goes on with the lock of a ticket, which another guard has let go of with [`Guard::detach`](crate::Guard::detach). The lock
            /// stays held in between, and those who wait for it keep their places.
            ///
            /// The first one to adopt a ticket has the lock. The guard has a higher token than the one before. `ttl`, `max_hold` and
            /// `why` are those of this lock, and `max_hold` counts from now. Of a semaphore, it has as many permits as the ticket, with the
            /// same slots, and may have been of another limit if that [was changed](lock_core::limit): the store is asked first. If the
            /// store fails, this asks again for as long as `acquire` does. It never waits for another holder.
            ///
            /// # Errors
            /// `TicketOver` if the ticket was adopted already, if the lock was released or revoked, or if the ttl is over; then nothing is
            /// acquired. `Invalid` for a ticket for something else, and `Backend` for one of another limit than is in use; the ticket can
            /// still be adopted. Otherwise as [`acquire`](Self::acquire). If the store did not say whether the ticket was adopted, the lock
            /// is being released.
            ///
            $(#[$adopt])*
            pub $($async)? fn adopt(&self, ticket: &::lock_core::Ticket) -> Result<Guard<M>, ::lock_core::AcquireError> {
                let asking = self.0.ask_for(ticket)?;
                if let Some(look) = self.0.look_before_adopting(ticket)? {
                    ask_limit(look)$($await)*?;
                }
                asking.waited(take_turn(&asking)$($await)*).map(Guard)
            }
        }

        /// Waits for a turn, for a guard of any kind.
        $($async)? fn take_turn<M>(
            asking: &$crate::Asking<'_, Driver, M>,
        ) -> Result<$crate::Held<Driver, M>, ::lock_core::Refusal> {
            loop {
                let (joined, turn, _watch) = asking.join();
                let verdict = verdict(turn.site(), turn.id(), joined)$($await)*;
                if let Some(held) = asking.held(turn, verdict) {
                    return held;
                }
            }
        }
    };
}

/// What a semaphore can do beyond what every lock can, in the same way.
#[macro_export]
macro_rules! limits {
    (
        [$($async:tt)?] [$($await:tt)*]
        $(#[$set_limit:meta])* $(async)? fn set_limit;
        $(#[$available_permits:meta])* $(async)? fn available_permits;
        $(#[$limit:meta])* $(async)? fn limit;
        $(#[$acquire_many:meta])* $(async)? fn acquire_many;
        $(#[$try_acquire_many:meta])* $(async)? fn try_acquire_many;
    ) => {
        impl Semaphore {
            /// Changes the limit for all who use the name, also while permits are held and waited for.
            ///
            /// Nobody loses a permit. If the limit is lowered, nothing is granted until it is no longer exceeded; if it is raised, those
            /// who wait are served at once. A waiter for more permits than the new limit gets an error.
            ///
            /// For seven days after the last change, the old limits are accepted as well (the last eight of them: what was in use, and
            /// what this semaphore was made with), and mean the new one. So a rolling deployment can change the limit: processes of
            /// the new version call this when they start. If several set it at the same time, the last one wins.
            ///
            /// # Errors
            /// `Invalid` for an invalid name or limit; `Backend` if the name is in use as a lock, if the store failed, or if it cannot
            /// change limits; `Closed` if this client was closed. After an error whose effect is unknown, call it again.
            ///
            $(#[$set_limit])*
            pub $($async)? fn set_limit(&self, limit: u32) -> Result<(), ::lock_core::limit::LimitError> {
                ask_limit(self.0.set_limit(limit)?)$($await)*.map(drop)
            }

            /// How many permits nobody holds, of the limit in force: a snapshot from one request to the store. Others may take them, or
            /// wait for them, before you ask.
            ///
            /// # Errors
            /// As [`set_limit`](Self::set_limit). Another limit than the one in use is an error, as for an acquire.
            ///
            $(#[$available_permits])*
            pub $($async)? fn available_permits(&self) -> Result<u32, ::lock_core::limit::LimitError> {
                Ok(ask_limit(self.0.look_at_limit()?)$($await)*?.available())
            }

            /// The limit in force: what this semaphore was made with, unless it was changed. A snapshot, from one request to the store.
            ///
            /// # Errors
            /// As [`available_permits`](Self::available_permits).
            ///
            $(#[$limit])*
            pub $($async)? fn limit(&self) -> Result<u32, ::lock_core::limit::LimitError> {
                Ok(ask_limit(self.0.look_at_limit()?)$($await)*?.limit.get())
            }

            /// Waits for `count` permits, from 1 to 64, which are granted together.
            ///
            /// # Errors
            /// As [`acquire`](Self::acquire); `Invalid` for none, for more than the limit, and for more than 64.
            ///
            $(#[$acquire_many])*
            pub $($async)? fn acquire_many(&self, count: u32) -> Result<PermitGuard, ::lock_core::AcquireError> {
                Self(self.0.with_count(count)).acquire()$($await)*
            }

            /// Takes `count` permits, from 1 to 64, if they are free; `None` if they are not.
            ///
            /// # Errors
            /// As [`try_acquire`](Self::try_acquire); `Invalid` for none, for more than the limit, and for more than 64.
            ///
            $(#[$try_acquire_many])*
            pub $($async)? fn try_acquire_many(&self, count: u32) -> Result<Option<PermitGuard>, ::lock_core::AcquireError> {
                Self(self.0.with_count(count)).try_acquire()$($await)*
            }
        }
    };
}
