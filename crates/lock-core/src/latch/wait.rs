//! Waiting for a latch: when to poll it, and when the wait is over.

use std::time::Duration;

use super::error::LatchError;
use super::request::{Generation, LatchState, Seen};
use crate::policy::{Dice, pace};
use crate::{BackendError, LockName, Moment, to_the_millisecond};

/// One wait for a latch, without I/O: a facade carries out its steps.
///
/// The wait is for one generation: the first that it sees. It ends when that is complete, even if the generation was reset
/// before the wait saw it complete, as long as the store still knows.
#[derive(Debug)]
pub struct Wait {
    name: LockName,
    timeout: Option<Duration>,
    until: Option<Moment>,
    poll_at: Moment,
    generation: Option<Generation>,
    tries: u32,
    dice: Dice,
    end: Option<Result<(), LatchError>>,
}

/// The next step of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask about the latch now, and report the answer with [`Wait::answered`].
    Poll,
    /// Nothing before this moment, unless the store sends an event: then call [`Wait::notified`].
    Sleep(Moment),
    /// It is over.
    End(Result<(), LatchError>),
}

impl Wait {
    /// A wait that begins now, and lasts for at most `timeout` if there is one. The seed is for jitter.
    pub fn new(name: LockName, now: Moment, timeout: Option<Duration>, seed: u64) -> Self {
        let until = timeout.map(|timeout| now + timeout);
        Self { name, timeout, until, poll_at: now, generation: None, tries: 0, dice: Dice::new(seed), end: None }
    }

    /// The next step.
    pub fn step(&self, now: Moment) -> Step {
        match &self.end {
            Some(end) => Step::End(end.clone()),
            None if now >= self.poll_at => Step::Poll,
            None => Step::Sleep(self.poll_at),
        }
    }

    /// The store says that the latch has changed, or may have.
    pub fn notified(&mut self, now: Moment) {
        self.poll_at = self.poll_at.min(now);
    }

    /// The answer to a poll that was handed out at `asked_at`. The last poll is never before the end of the wait, so what a
    /// wait that timed out reports is true at its end.
    pub fn answered(&mut self, asked_at: Moment, now: Moment, answer: Result<Seen, BackendError>) {
        let is_over = self.until.is_some_and(|until| asked_at >= until);
        let (end, pause) = match answer {
            Ok(Seen { state, told }) => {
                let end = self.judge(state).or_else(|| is_over.then(|| Err(self.timed_out(state))));
                (end, if told { pace::TOLD } else { pace::poll(self.tries) })
            }
            Err(error) if is_over || !error.kind().is_transient() => (Some(Err(error.into())), Duration::ZERO),
            Err(_) => (None, pace::retry(self.tries)),
        };
        self.end = end;
        self.tries += 1;
        let poll_at = now + self.dice.jittered(pause);
        self.poll_at = self.until.map_or(poll_at, |until| poll_at.min(until));
    }

    /// The end of the wait with this state; `None` if it continues.
    fn judge(&mut self, state: Option<LatchState>) -> Option<Result<(), LatchError>> {
        let name = || self.name.clone();
        match (self.generation, state) {
            (None, None) => None,
            (Some(_), None) => Some(Err(LatchError::Expired { name: name() })),
            (Some(waited_for), Some(state)) if waited_for != state.generation => {
                let was_complete = state.completed == Some(waited_for);
                Some(if was_complete { Ok(()) } else { Err(LatchError::Reset { name: name() }) })
            }
            (_, Some(state)) => {
                self.generation = Some(state.generation);
                state.is_complete().then_some(Ok(()))
            }
        }
    }

    fn timed_out(&self, state: Option<LatchState>) -> LatchError {
        let timeout = self.timeout.unwrap_or_default();
        let waited = if timeout.is_zero() { timeout } else { to_the_millisecond(timeout) };
        LatchError::TimedOut { name: self.name.clone(), waited, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latch::request::Count;
    use crate::{Effect, ErrorKind, Operation};

    const SECOND: Duration = Duration::from_secs(1);

    fn state(generation: u64, expected: Option<u32>, arrived: u32) -> LatchState {
        let expected = expected.map(|count| Count::new(count).unwrap());
        LatchState { expected, arrived, ..LatchState::new(Generation::new(generation)) }
    }

    fn wait(timeout: Option<Duration>) -> Wait {
        Wait::new("a".parse().unwrap(), Moment::ORIGIN, timeout, 1)
    }

    /// Looks now, and returns what comes next.
    fn look(wait: &mut Wait, now: Moment, state: impl Into<Option<LatchState>>) -> Step {
        assert_eq!(wait.step(now), Step::Poll);
        wait.answered(now, now, Ok(Seen { state: state.into(), told: false }));
        wait.step(now)
    }

    fn fail(wait: &mut Wait, now: Moment, kind: ErrorKind) -> Step {
        wait.answered(now, now, Err(error(kind)));
        wait.step(now)
    }

    fn error(kind: ErrorKind) -> BackendError {
        BackendError::new("test", Operation::Latch, kind, Effect::None, "on purpose")
    }

    /// Looks as often as the wait wants to, until it ends.
    fn end(wait: &mut Wait, mut now: Moment, state: LatchState) -> (Result<(), LatchError>, Moment) {
        loop {
            match wait.step(now) {
                Step::Poll => _ = look(wait, now, state),
                Step::Sleep(until) => now = until,
                Step::End(end) => return (end, now),
            }
        }
    }

    #[test]
    fn it_ends_when_all_have_arrived_and_looks_more_and_more_rarely_until_then() {
        let (mut wait, mut now, mut gaps) = (wait(None), Moment::ORIGIN, Vec::new());
        for _ in 0..20 {
            let Step::Sleep(until) = look(&mut wait, now, state(1, Some(2), 1)) else { panic!("{wait:?}") };
            gaps.push(until.since(now));
            now = until;
        }
        assert!(gaps[0] <= Duration::from_millis(10) && gaps[19] <= Duration::from_millis(250), "{gaps:?}");
        assert!(gaps[19] >= Duration::from_millis(125), "{gaps:?}");
        assert_eq!(look(&mut wait, now, state(1, Some(2), 2)), Step::End(Ok(())));
    }

    #[test]
    fn a_wait_that_is_told_looks_rarely_and_at_once_when_it_hears() {
        let mut wait = wait(None);
        wait.answered(Moment::ORIGIN, Moment::ORIGIN, Ok(Seen { state: Some(state(1, Some(2), 1)), told: true }));
        assert!(matches!(wait.step(Moment::ORIGIN), Step::Sleep(until) if until >= Moment::ORIGIN + SECOND));
        wait.notified(Moment::ORIGIN);
        assert_eq!(wait.step(Moment::ORIGIN), Step::Poll);
    }

    #[test]
    fn it_ends_at_its_limit_with_what_was_seen_then() {
        let mut timed = wait(Some(SECOND));
        let (error, now) = end(&mut timed, Moment::ORIGIN, state(1, Some(3), 1));
        assert_eq!(now, Moment::ORIGIN + SECOND);
        assert_eq!(error.unwrap_err().missing(), Some(2));
        let mut at_once = wait(Some(Duration::ZERO));
        let Step::End(Err(error)) = look(&mut at_once, Moment::ORIGIN, None) else { panic!("{at_once:?}") };
        assert_eq!(error.to_string(), "waited 0s for the latch \"a\"; nobody has arrived, and no count is set");
        let mut open = wait(Some(Duration::ZERO));
        assert_eq!(look(&mut open, Moment::ORIGIN, state(1, Some(1), 1)), Step::End(Ok(())));
    }

    #[test]
    fn it_is_for_the_first_generation_that_it_sees() {
        let now = Moment::ORIGIN + SECOND;
        let seen_first = || {
            let mut wait = wait(None);
            assert!(matches!(look(&mut wait, Moment::ORIGIN, state(5, Some(2), 1)), Step::Sleep(_)));
            wait
        };
        let reset = Step::End(Err(LatchError::Reset { name: "a".parse().unwrap() }));
        assert_eq!(look(&mut seen_first(), now, state(6, Some(2), 2)), reset);
        let completed = Some(Generation::new(5));
        assert_eq!(look(&mut seen_first(), now, LatchState { completed, ..state(6, None, 0) }), Step::End(Ok(())));
        let expired = Step::End(Err(LatchError::Expired { name: "a".parse().unwrap() }));
        assert_eq!(look(&mut seen_first(), now, None), expired);
        let mut early = wait(None);
        assert!(matches!(look(&mut early, Moment::ORIGIN, None), Step::Sleep(_)), "nobody has used it yet");
        assert!(matches!(look(&mut early, now, state(7, None, 1)), Step::Sleep(_)));
    }

    #[test]
    fn it_outlasts_transient_errors_but_never_calls_a_silent_store_a_timeout() {
        let mut patient = wait(Some(SECOND));
        assert!(matches!(fail(&mut patient, Moment::ORIGIN, ErrorKind::Unreachable), Step::Sleep(_)));
        let late = Moment::ORIGIN + SECOND;
        let silent = Step::End(Err(error(ErrorKind::Unreachable).into()));
        assert_eq!(fail(&mut patient, late, ErrorKind::Unreachable), silent);
        let denied = Step::End(Err(error(ErrorKind::Denied).into()));
        assert_eq!(fail(&mut wait(None), Moment::ORIGIN, ErrorKind::Denied), denied);
    }
}
