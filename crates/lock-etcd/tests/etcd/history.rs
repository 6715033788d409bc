//! What clients do under a lock, and what of it must not happen: two believe that they hold it, an update is lost, tokens fall.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lock_blocking::Guard;

/// A number that only the holder of a lock changes, and who believes to be that.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The holder, and until when it believes to hold.
    believes: Option<(u64, Instant)>,
    /// The highest token that was seen.
    token: u64,
    value: u64,
    turns: u64,
    refused: u64,
    problems: Vec<String>,
}

impl History {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a turn that begins. Reads the number, and refuses earlier tokens from now on.
    pub(crate) fn begin(&self, guard: &Guard) -> u64 {
        let (mut state, token) = (self.lock(), guard.fencing_token().get());
        if guard.check().is_ok() && token <= state.token {
            let problem = format!("token {token} after {}", state.token);
            state.problems.push(problem);
        }
        state.token = state.token.max(token);
        if guard.check().is_ok() {
            state.believe(token, guard.valid_until());
        }
        state.value
    }

    /// Notes until when the holder believes to hold, if it does.
    pub(crate) fn go_on(&self, guard: &Guard) {
        if guard.check().is_ok() {
            self.believe(guard, guard.valid_until());
        }
    }

    /// Notes that a holder believes to hold for so long.
    pub(crate) fn believe(&self, guard: &Guard, until: Instant) {
        self.lock().believe(guard.fencing_token().get(), until);
    }

    /// Writes the number, one higher than it was read, whatever the guard says, and ends the turn.
    pub(crate) fn end(&self, token: u64, read: u64) {
        let mut state = self.lock();
        state.believes.take_if(|(holder, _)| *holder == token);
        if token < state.token {
            state.refused += 1;
        } else if read == state.value {
            (state.value, state.turns) = (read + 1, state.turns + 1);
        } else {
            let problem = format!("{token} writes over {}, and has read {read}", state.value);
            state.problems.push(problem);
        }
    }

    /// How many turns there were.
    pub(crate) fn turns(&self) -> u64 {
        self.lock().turns
    }

    /// What must not happen.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.lock().problems.clone()
    }
}

impl State {
    fn believe(&mut self, token: u64, until: Instant) {
        let now = Instant::now();
        match self.believes {
            Some((other, ends)) if other != token && ends > now => {
                self.problems.push(format!("{token} holds, and {other} believes so for {:?} more", ends - now));
            }
            Some(_) | None => self.believes = Some((token, until)),
        }
    }
}
