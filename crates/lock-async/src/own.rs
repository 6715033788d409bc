//! The request that a user's task runs itself, because it waits for it and nothing else is under way at its site.
//!
//! It stays the site's: the task only polls it. As soon as anything else happens at the site, or the task goes away, a
//! loop continues it. So no other waiter depends on a task that is not polled, and dropping the task cancels nothing.

use std::future::ready;
use std::mem;
use std::task::Waker;

use futures_util::future::BoxFuture;
use lock_core::station::{ActionId, TurnId};

/// A request to the store, up to the point where its station has the answer.
pub(crate) type Running = BoxFuture<'static, ()>;

/// The requests of a site that no loop has yet. Boxed while there are any: most sites just hold.
#[derive(Default)]
pub(crate) struct Own(Option<Box<Requests>>);

/// What is under way at a site.
#[derive(Default)]
struct Requests {
    first: First,
    behind: Vec<Running>,
    /// How many were not answered yet, those of the loops included.
    unanswered: usize,
}

/// The request that a task may run.
#[derive(Default)]
enum First {
    #[default]
    None,
    /// It is not being polled.
    Here { id: ActionId, request: Running, by: Option<Runner> },
    /// The task of this turn polls it.
    Polled { id: ActionId, by: TurnId, after: After },
}

/// The task that has polled a request so far.
struct Runner {
    turn: TurnId,
    /// Wakes it when a loop has got the request: until then it waits for nothing else.
    waker: Waker,
}

/// What happens to a request when its poll is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The task goes on with it.
    Stays,
    /// A loop gets it.
    Goes,
}

impl Own {
    /// A request of the station. What follows decides who runs it.
    pub(crate) fn push(&mut self, id: ActionId, request: Running) {
        let all = self.0.get_or_insert_default();
        all.unanswered += 1;
        if all.unanswered == 1 {
            all.first = First::Here { id, request, by: None };
        } else {
            all.behind.push(request);
        }
    }

    /// The station gets the answer to a request.
    pub(crate) fn answered(&mut self, answered: ActionId) {
        let Some(all) = &mut self.0 else { return };
        all.unanswered -= 1;
        if matches!(all.first, First::Polled { id, .. } if id == answered) {
            all.first = First::None;
        }
        if all.unanswered == 0 {
            self.0 = None;
        }
    }

    /// The request for the task of this turn to poll, if there is no other. Otherwise all go to a loop.
    pub(crate) fn take(&mut self, turn: TurnId, send: impl FnMut(Running) -> Result<(), Running>) -> Option<Running> {
        let all = self.0.as_mut()?;
        match mem::take(&mut all.first) {
            First::Here { id, request, by }
                if all.behind.is_empty() && by.as_ref().is_none_or(|by| by.turn == turn) =>
            {
                all.first = First::Polled { id, by: turn, after: After::Stays };
                Some(request)
            }
            other @ (First::None | First::Here { .. } | First::Polled { .. }) => {
                all.first = other;
                self.hand_over(send);
                None
            }
        }
    }

    /// Ends the poll by the task of this turn. Returns whether the task goes on with the request.
    pub(crate) fn settle(
        &mut self,
        turn: TurnId,
        left: Option<(Running, Waker)>,
        send: impl FnMut(Running) -> Result<(), Running>,
    ) -> bool {
        let Some(all) = &mut self.0 else { return false };
        let First::Polled { id, by, after } = all.first else { return false };
        if by != turn {
            return false;
        }
        all.first = First::None;
        if let Some((request, waker)) = left {
            all.first = First::Here { id, request, by: Some(Runner { turn, waker }) };
        }
        if after == After::Goes || !all.behind.is_empty() {
            self.hand_over(send);
        }
        self.0.as_ref().is_some_and(|all| matches!(all.first, First::Here { .. }))
    }

    /// Gives all to a loop: at once, or when the present poll is over. What cannot be sent stays if it was polled, because
    /// its end needs the site, which is locked.
    pub(crate) fn hand_over(&mut self, mut send: impl FnMut(Running) -> Result<(), Running>) {
        let Some(all) = &mut self.0 else { return };
        match mem::take(&mut all.first) {
            First::Polled { id, by, .. } => {
                all.first = First::Polled { id, by, after: After::Goes };
                return;
            }
            First::Here { id, request, by } => {
                let sent = send(request);
                let waker = by.as_ref().map(|by| by.waker.clone());
                if let (Err(request), Some(_)) = (sent, &by) {
                    all.first = First::Here { id, request, by };
                }
                waker.into_iter().for_each(Waker::wake);
            }
            First::None => {}
        }
        mem::take(&mut all.behind).into_iter().for_each(|request| _ = send(request));
    }

    /// What could not be sent, for the caller to drop once the site is unlocked.
    pub(crate) fn take_stranded(&mut self) -> Option<Running> {
        let all = self.0.as_mut()?;
        match mem::take(&mut all.first) {
            First::Here { request, .. } => Some(request),
            other @ (First::None | First::Polled { .. }) => {
                all.first = other;
                None
            }
        }
    }

    /// Gives away what could not be sent, for others to drop it.
    pub(crate) fn give_away_stranded(&mut self, give: impl FnOnce(Running) -> Result<(), Running>) {
        let Some(all) = &mut self.0 else { return };
        if let First::Here { request, .. } = &mut all.first {
            match give(mem::replace(request, Box::pin(ready(())))) {
                Ok(()) => all.first = First::None,
                Err(stays) => *request = stays,
            }
        }
    }

    /// Whether a task polls a request at this moment.
    pub(crate) fn is_polled(&self) -> bool {
        self.0.as_ref().is_some_and(|all| matches!(all.first, First::Polled { .. }))
    }

    /// Whether there is a request that no loop has.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.as_ref().is_some_and(|all| !matches!(all.first, First::None) || !all.behind.is_empty())
    }
}
