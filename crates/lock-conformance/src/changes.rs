//! Guards of both facades that change what they hold.

use lock_core::{AcquireError, FencingToken, Ticket};
use lock_host::{ChangeError, Exclusive, Permits, Shared};

use crate::locks::{Guard, Lock, Waiter};

/// What a change returns: the guard after it, or the guard that is left.
type Changed<M, N> = Result<Guard<N>, ChangeError<Guard<M>>>;

impl<M> Guard<M> {
    fn changed<N>(
        self,
        nonblocking: impl AsyncFnOnce(
            lock_async::Guard<M>,
        ) -> Result<lock_async::Guard<N>, ChangeError<lock_async::Guard<M>>>,
        blocking: impl FnOnce(
            lock_blocking::Guard<M>,
        ) -> Result<lock_blocking::Guard<N>, ChangeError<lock_blocking::Guard<M>>>,
    ) -> Changed<M, N> {
        match self {
            Self::Nonblocking(guard, runtime) => match runtime.block_on(nonblocking(guard)) {
                Ok(guard) => Ok(Guard::Nonblocking(guard, runtime)),
                Err(error) => Err(error.map(|guard| Self::Nonblocking(guard, runtime))),
            },
            Self::Blocking(guard) => match blocking(guard) {
                Ok(guard) => Ok(Guard::Blocking(guard)),
                Err(error) => Err(error.map(Self::Blocking)),
            },
        }
    }
}

impl<M: 'static> Guard<M> {
    pub(crate) fn detach(self) -> Result<Ticket, ChangeError<Self>> {
        match self {
            Self::Nonblocking(guard, runtime) => {
                let detached = runtime.block_on(guard.detach());
                detached.map_err(|error| error.map(|guard| Self::Nonblocking(guard, runtime)))
            }
            Self::Blocking(guard) => guard.detach().map_err(|error| error.map(Self::Blocking)),
        }
    }
}

impl<M: 'static> Lock<M> {
    pub(crate) fn adopt(&self, ticket: &Ticket) -> Result<Guard<M>, AcquireError> {
        match self {
            Self::Nonblocking(lock, runtime) => {
                Ok(Guard::Nonblocking(runtime.block_on(lock.adopt(ticket))?, runtime.clone()))
            }
            Self::Blocking(lock, _) => Ok(Guard::Blocking(lock.adopt(ticket)?)),
        }
    }

    /// The same in the background.
    pub(crate) fn begin_to_adopt(&self, ticket: &Ticket) -> Waiter<M> {
        let ticket = ticket.clone();
        match self {
            Self::Nonblocking(lock, runtime) => {
                let lock = lock.clone();
                Waiter::Nonblocking(runtime.spawn(async move { lock.adopt(&ticket).await }), runtime.clone())
            }
            Self::Blocking(lock, client) => {
                let lock = lock.clone();
                Waiter::Blocking(std::thread::spawn(move || lock.adopt(&ticket)), client.clone())
            }
        }
    }
}

impl Guard<Exclusive> {
    pub(crate) fn downgrade(self) -> Changed<Exclusive, Shared> {
        self.changed(lock_async::Guard::downgrade, lock_blocking::Guard::downgrade)
    }
}

impl Guard<Shared> {
    pub(crate) fn try_upgrade(self) -> Changed<Shared, Exclusive> {
        self.changed(lock_async::Guard::try_upgrade, lock_blocking::Guard::try_upgrade)
    }
}

impl Guard<Permits> {
    pub(crate) fn give_back(self, count: u32) -> Changed<Permits, Permits> {
        self.changed(async |guard| guard.give_back(count).await, |guard| guard.give_back(count))
    }

    /// The permits, and the token of each. The guard's other views of them must agree.
    pub(crate) fn tokens(&self) -> Vec<(u32, FencingToken)> {
        let (slot, slots, tokens) = match self {
            Self::Nonblocking(guard, _) => (guard.slot(), guard.slots().to_vec(), guard.tokens().collect::<Vec<_>>()),
            Self::Blocking(guard) => (guard.slot(), guard.slots().to_vec(), guard.tokens().collect::<Vec<_>>()),
        };
        assert_eq!(tokens.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), slots);
        assert_eq!(Some(&slot), slots.first());
        assert_eq!(tokens.first().map(|(_, token)| *token), Some(self.token()));
        tokens
    }

    pub(crate) fn slots(&self) -> Vec<u32> {
        self.tokens().into_iter().map(|(slot, _)| slot).collect()
    }
}
