//! The latch of both facades, which is the same but for `async` and `.await`.

/// A latch, and all that users call on it, with the facade's own part of the documentation. `async` and `.await` are passed
/// in, or nothing in their place. The facade adds a `Bell`, which is what a call sleeps on, and two functions: `ask` sends a
/// request, and `sleep` sleeps until a moment or until the bell rings. What these name of `lock_core::latch` is imported here.
#[macro_export]
macro_rules! latch {
    (
        [$($async:tt)?] [$($await:tt)*]
        $(#[$latch:meta])* struct Latch;
        $(#[$expect:meta])* $(async)? fn expect;
        $(#[$arrive:meta])* $(async)? fn arrive;
        $(#[$arrive_as:meta])* $(async)? fn arrive_as;
        $(#[$remaining:meta])* $(async)? fn remaining;
        $(#[$state:meta])* $(async)? fn state;
        $(#[$wait:meta])* $(async)? fn wait;
        $(#[$wait_for:meta])* $(async)? fn wait_for;
        $(#[$reset:meta])* $(async)? fn reset;
    ) => {
        use ::lock_core::latch::{LatchError, LatchState, Request, Seen, Step, Watching};
        use ::std::time::Duration;

        /// A latch by its name: it opens when as many have arrived as are expected. Made by [`Client::latch`](crate::Client::latch).
        ///
        /// One process, the coordinator or a waiter, sets how many are expected with [`expect`](Self::expect). The others
        /// [`arrive`](Self::arrive) and need to know neither that number nor each other. They may arrive before the number is set.
        /// Callers of [`wait`](Self::wait) continue when all have arrived. The latch stays open until it is
        /// [`reset`](Self::reset) or its [`ttl`](Self::ttl) is over.
        ///
        /// The store keeps the arrivals, so they survive the end of the processes that arrived and of those that wait. It does so for
        /// the latch's own ttl, an hour if not set; each arrival, count and reset re-arms it. A machine that restarts forgets the
        /// latches of its SQLite files.
        ///
        /// A request that fails is repeated for up to 10 s, and counts once even if its first attempt was not answered. Waiters are
        /// woken by the store if it can push (Redis over a URL, memory); otherwise they look again, at least every quarter of a second.
        ///
        /// **When not to use it.** A latch does not know who is alive: if a process dies before it arrives, the others wait until their
        /// limit. To let one process at a time do something, use a [`Mutex`](crate::Mutex). To hand out work or results, use a queue or
        /// a database. A quorum (`redlock://`) has no latches: each of its nodes would count on its own.
        ///
        $(#[$latch])*
        #[derive(Clone, Debug)]
        #[must_use = "a latch does nothing until it is used"]
        pub struct Latch(pub(crate) $crate::NamedLatch<Driver>);

        impl Latch {
            /// Sets how long the store keeps the latch after the latest arrival, count or reset: 100 ms to 365 days, an hour if not set.
            ///
            /// A request never shortens the time that is left. When it is over, arrivals and count are forgotten.
            pub fn ttl(mut self, ttl: Duration) -> Self {
                self.0.set_ttl(ttl);
                self
            }

            /// Ends calls when this token is cancelled, with the error `Cancelled`: waits, and repetitions of a request that fails. A
            /// request that was sent may still take effect. A token that is already cancelled ends a call without a request.
            ///
            /// This is how another thread ends a wait. In async code, dropping the future does that as well.
            pub fn cancelled_by(mut self, token: &$crate::CancelToken) -> Self {
                self.0.cancel(token);
                self
            }

            /// Sets how many arrivals are expected: 1 to 100,000. The same number again changes nothing.
            ///
            /// The number is for the generation that is present when the call begins. If that is reset during the call, the number is not
            /// set for the new one, and the state that is returned shows that one.
            ///
            /// # Errors
            /// `OtherCount` if another number is set for this generation, which stays; `Expired` if the ttl of the latch passed during
            /// the call; `Invalid` for an invalid number, name or ttl;
            /// `Backend` if the store failed or has no latches; `Closed` if this client was closed.
            ///
            $(#[$expect])*
            pub $($async)? fn expect(&self, count: u32) -> Result<LatchState, LatchError> {
                let call = self.0.call(Bell::default())?;
                let count = call.count(count)?;
                let made = call.stored(insist(&call, &call.make())$($await)*?)?;
                if made.expected.is_some() {
                    return call.agreed(count, made);
                }
                let seen = insist(&call, &call.expectation(count, &made))$($await)*?;
                call.expected(count, &made, seen)
            }

            /// Arrives, as somebody who has not arrived before: each call counts.
            ///
            /// Returns the latch as it is then. Once it is open, later arrivals are not counted.
            ///
            /// # Errors
            /// `Invalid` for an invalid name or ttl; `Backend` if the store failed or has no latches; its effect says whether the
            /// arrival may have been counted; `Closed` if this client was closed.
            ///
            $(#[$arrive])*
            pub $($async)? fn arrive(&self) -> Result<LatchState, LatchError> {
                self.arrive_with(None)$($await)*
            }

            /// Arrives under an id of 1 to 200 bytes, such as the name of a part of the work. An id counts once in each generation,
            /// whichever process arrives under it.
            ///
            /// # Errors
            /// As [`arrive`](Self::arrive), and `Invalid` for an invalid id.
            ///
            $(#[$arrive_as])*
            pub $($async)? fn arrive_as(&self, id: &str) -> Result<LatchState, LatchError> {
                self.arrive_with(Some(id))$($await)*
            }

            $($async)? fn arrive_with(&self, id: Option<&str>) -> Result<LatchState, LatchError> {
                let call = self.0.call(Bell::default())?;
                let request = call.arrival(id)?;
                call.stored(insist(&call, &request)$($await)*?)
            }

            /// How many are missing. `None` if nobody has said yet how many are expected.
            ///
            /// # Errors
            /// As [`arrive`](Self::arrive).
            ///
            $(#[$remaining])*
            pub $($async)? fn remaining(&self) -> Result<Option<u32>, LatchError> {
                Ok(self.state()$($await)*?.and_then(|state| state.missing()))
            }

            /// The latch as it is now. `None` if nobody has used it, or its ttl is over.
            ///
            /// # Errors
            /// As [`arrive`](Self::arrive).
            ///
            $(#[$state])*
            pub $($async)? fn state(&self) -> Result<Option<LatchState>, LatchError> {
                let call = self.0.call(Bell::default())?;
                Ok(insist(&call, &call.look(Watching::Unwanted))$($await)*?.state)
            }

            /// Waits until all that are expected have arrived, however long that takes.
            ///
            /// The wait is for the first generation that it sees, the present one if there is one.
            ///
            /// # Errors
            /// `Reset` if that generation was reset before it was complete; `Expired` if the ttl of the latch passed; `Invalid` for an
            /// invalid name or ttl; `Backend` for errors that are permanent, or if the store has no latches; `Closed` if this client
            /// was closed; `Cancelled` if the [token](Self::cancelled_by) of the latch was.
            ///
            $(#[$wait])*
            pub $($async)? fn wait(&self) -> Result<(), LatchError> {
                self.wait_until(None)$($await)*
            }

            /// The same, but waits for at most this time. With a time of zero, it looks once.
            ///
            /// # Errors
            /// `TimedOut` when the time is over, which says how many are missing; those of [`wait`](Self::wait); `Backend` if the
            /// store did not answer at the end.
            $(#[$wait_for])*
            pub $($async)? fn wait_for(&self, limit: Duration) -> Result<(), LatchError> {
                self.wait_until(Some(limit))$($await)*
            }

            $($async)? fn wait_until(&self, limit: Option<Duration>) -> Result<(), LatchError> {
                let call = self.0.call(Bell::default())?;
                let (mut wait, look) = (call.wait(limit)?, call.look(Watching::Wanted));
                loop {
                    let ports = call.ports()?;
                    let asked_at = call.now();
                    match wait.step(asked_at) {
                        Step::End(end) => return end,
                        Step::Look => {
                            let (name, latch) = (&look.name, ::lock_core::Operation::Latch);
                            let answer = ask(ports, name, latch, |store| store.latch(&look, call.within()))$($await)*;
                            wait.looked(asked_at, call.now(), answer);
                        }
                        Step::Sleep(until) => {
                            sleep(&call, until)$($await)*;
                            wait.hear(call.now());
                        }
                    }
                }
            }

            /// Begins a new generation: arrivals and count of the present one are forgotten, and do not count for the new one.
            ///
            /// Those who wait for the old generation continue if it was complete, and otherwise get the error `Reset`. If several call
            /// this at the same time, one new generation begins. A latch that nobody has used needs no reset.
            ///
            /// # Errors
            /// As [`arrive`](Self::arrive).
            ///
            $(#[$reset])*
            pub $($async)? fn reset(&self) -> Result<(), LatchError> {
                let call = self.0.call(Bell::default())?;
                // Repeating it ends no later generation, because it names the one to end.
                if let Some(state) = insist(&call, &call.look(Watching::Unwanted))$($await)*?.state {
                    insist(&call, &call.reset(&state))$($await)*?;
                }
                Ok(())
            }
        }

        type Call<'a> = $crate::LatchCall<'a, Driver, Bell>;

        /// Repeats a request until the store has answered.
        $($async)? fn insist(call: &Call<'_>, request: &Request) -> Result<Seen, LatchError> {
            let mut repeat = call.repeat()?;
            loop {
                let (ports, name, latch) = (call.ports()?, &request.name, ::lock_core::Operation::Latch);
                match ask(ports, name, latch, |store| store.latch(request, call.within()))$($await)* {
                    Ok(seen) => return Ok(seen),
                    Err(error) => sleep(call, repeat.failed(call.now(), error)?)$($await)*,
                }
            }
        }
    };
}
