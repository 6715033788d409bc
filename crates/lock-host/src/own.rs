//! Requests that a user's task runs itself: the task waits for the answer, and nothing else is under way at its site. Nothing is
//! polled here; this says who polls what.
//!
//! Such a request still belongs to the site; the task only polls it. As soon as anything else happens at the site, or
//! the task goes away, a loop of the driver continues the request. So no other waiter depends on a task that may not be
//! polled, and dropping the task cancels nothing.

use std::mem;
use std::task::Waker;

use lock_core::station::{ActionId, TurnId};

/// The requests of a site that are not in a loop yet, each up to the point where its station has the answer. Boxed, because most
/// sites hold a lease and have none.
pub struct Own<R>(Option<Box<Requests<R>>>);

/// What is under way at a site.
struct Requests<R> {
    first: First<R>,
    behind: Vec<R>,
    /// How many have no answer yet, including those in the loops.
    unanswered: usize,
}

/// The request that a task may run.
enum First<R> {
    None,
    /// It is not being polled now. `by` has polled it before.
    Here {
        id: ActionId,
        request: R,
        by: Option<Runner>,
    },
    /// The task of this turn polls it.
    Polled {
        id: ActionId,
        by: TurnId,
        after: After,
    },
}

/// The task that has polled a request so far.
struct Runner {
    turn: TurnId,
    /// Wakes the task when a loop gets the request. Until then, the task only waits for the request itself.
    waker: Waker,
}

/// What happens to a request when its poll is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The task keeps it.
    Stays,
    /// A loop gets it.
    Goes,
}

impl<R> Own<R> {
    /// Adds a request of the station. A task may take it; otherwise it is handed over to a loop.
    pub fn push(&mut self, id: ActionId, request: R) {
        let nothing = || Box::new(Requests { first: First::None, behind: Vec::new(), unanswered: 0 });
        let all = self.0.get_or_insert_with(nothing);
        all.unanswered += 1;
        if all.unanswered == 1 {
            all.first = First::Here { id, request, by: None };
        } else {
            all.behind.push(request);
        }
    }

    /// A request was answered.
    pub fn answered(&mut self, answered: ActionId) {
        let Some(all) = &mut self.0 else { return };
        all.unanswered -= 1;
        if matches!(all.first, First::Polled { id, .. } if id == answered) {
            all.first = First::None;
        }
        if all.unanswered == 0 {
            self.0 = None;
        }
    }

    /// The request that the task of this turn is to poll, if it is the only one. Otherwise all requests go to a loop.
    pub fn take(&mut self, turn: TurnId, send: impl FnMut(R) -> Result<(), R>) -> Option<R> {
        let all = self.0.as_mut()?;
        match mem::replace(&mut all.first, First::None) {
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

    /// Ends the poll by the task of this turn. Returns whether the task keeps the request.
    pub fn settle(&mut self, turn: TurnId, left: Option<(R, Waker)>, send: impl FnMut(R) -> Result<(), R>) -> bool {
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

    /// Gives all requests to a loop, at once or when the present poll is over. If the loop has ended, a request that was
    /// polled before stays: dropping it locks the site, which is locked here.
    pub fn hand_over(&mut self, mut send: impl FnMut(R) -> Result<(), R>) {
        let Some(all) = &mut self.0 else { return };
        match mem::replace(&mut all.first, First::None) {
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

    /// The request that no loop could take. The caller drops it once the site is unlocked.
    pub fn take_stranded(&mut self) -> Option<R> {
        let all = self.0.as_mut()?;
        match mem::replace(&mut all.first, First::None) {
            First::Here { request, .. } => Some(request),
            other @ (First::None | First::Polled { .. }) => {
                all.first = other;
                None
            }
        }
    }

    /// Gives away what could not be sent, for others to drop it.
    pub fn give_away_stranded(&mut self, give: impl FnOnce(R) -> Result<(), R>) {
        let Some(all) = &mut self.0 else { return };
        all.first = match mem::replace(&mut all.first, First::None) {
            First::Here { id, request, by } => match give(request) {
                Ok(()) => First::None,
                Err(request) => First::Here { id, request, by },
            },
            other @ (First::None | First::Polled { .. }) => other,
        };
    }

    /// Whether a task polls a request at this moment.
    pub fn is_polled(&self) -> bool {
        self.0.as_ref().is_some_and(|all| matches!(all.first, First::Polled { .. }))
    }

    /// Whether there is a request that is not in a loop.
    pub fn is_waiting(&self) -> bool {
        self.0.as_ref().is_some_and(|all| !matches!(all.first, First::None) || !all.behind.is_empty())
    }
}

impl<R> Default for Own<R> {
    fn default() -> Self {
        Self(None)
    }
}
