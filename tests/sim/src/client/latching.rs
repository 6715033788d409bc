//! What users do with latches, as both facades do it.

use lock_core::latch::{
    Act, ArrivalId, Count, Generation, LatchError, LatchState, Repeat, Request, Seen, Step, Wait, Watching,
};
use lock_core::{BackendError, LockName, Moment, Ttl};

use crate::dice::Dice;
use crate::wish::Use;

/// A user at a latch.
#[derive(Debug)]
pub(crate) struct Call {
    name: LockName,
    ttl: Ttl,
    seed: u64,
    doing: Doing,
    /// When a request was handed out that was not answered yet.
    asked_at: Option<Moment>,
    /// The generation that a wait is for.
    pub(super) waits_for: Option<Generation>,
}

#[derive(Debug)]
enum Doing {
    /// A request is repeated until it is answered.
    Once {
        act: Act,
        repeat: Repeat,
        again_at: Moment,
        then: Then,
    },
    Waiting(Wait),
    /// It is over.
    Nothing,
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// The generation that was seen is reset.
    Reset,
    /// The count is set for the generation that was made or found, if it has none.
    Expect(Count),
}

/// What a call needs next.
#[derive(Debug)]
pub(super) enum Next {
    Ask(Request),
    /// It is over: with how a wait ended, if it was one.
    End(Option<Result<(), LatchError>>),
}

impl Call {
    pub(super) fn new(dice: &mut Dice, now: Moment, name: LockName, wanted: &Use, ttl: Ttl) -> Option<Self> {
        let seed = dice.number();
        let (act, then) = match wanted {
            Use::Arrive(id) => {
                let id = id.map_or_else(|| dice.number().to_string(), |id| format!("shard {id}"));
                (Act::Arrive { id: id.parse::<ArrivalId>().ok()?, call: dice.number(), ttl }, Then::Nothing)
            }
            Use::Expect(count) => (Act::Make { ttl }, Then::Expect(Count::new(*count).ok()?)),
            Use::Reset => (Act::Look { watching: Watching::Unwanted }, Then::Reset),
            Use::Wait(limit) => {
                let doing = Doing::Waiting(Wait::new(name.clone(), now, *limit, seed));
                return Some(Self { name, ttl, seed, doing, asked_at: None, waits_for: None });
            }
        };
        let doing = Doing::Once { act, repeat: Repeat::new(now, seed), again_at: now, then };
        Some(Self { name, ttl, seed, doing, asked_at: None, waits_for: None })
    }

    /// When it goes on by itself, unless it waits for an answer.
    pub(super) fn due(&self) -> Option<Moment> {
        match &self.doing {
            _ if self.asked_at.is_some() => None,
            Doing::Once { again_at, .. } => Some(*again_at),
            Doing::Waiting(wait) => match wait.step(Moment::ORIGIN) {
                Step::Sleep(until) => Some(until),
                Step::Poll | Step::End(_) => Some(Moment::ORIGIN),
            },
            Doing::Nothing => Some(Moment::ORIGIN),
        }
    }

    /// What it needs now, if it is due.
    pub(super) fn next(&mut self, now: Moment) -> Option<Next> {
        self.due().filter(|due| *due <= now)?;
        let act = match &self.doing {
            Doing::Once { act, .. } => act.clone(),
            Doing::Waiting(wait) => match wait.step(now) {
                Step::End(end) => return Some(Next::End(Some(end))),
                Step::Poll | Step::Sleep(_) => Act::Look { watching: Watching::Wanted },
            },
            Doing::Nothing => return Some(Next::End(None)),
        };
        self.asked_at = Some(now);
        Some(Next::Ask(Request { name: self.name.clone(), act }))
    }

    /// How long a request may take, according to its ttl.
    pub(super) fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// There was an answer, or none.
    pub(super) fn answered(&mut self, now: Moment, answer: Result<Seen, BackendError>) {
        let Some(asked_at) = self.asked_at.take() else { return };
        match (&mut self.doing, answer) {
            (Doing::Waiting(wait), answer) => {
                let seen = answer.as_ref().ok().and_then(|seen| seen.state);
                self.waits_for = self.waits_for.or(seen.map(|state| state.generation));
                wait.answered(asked_at, now, answer);
            }
            (Doing::Once { repeat, again_at, .. }, Err(error)) => match repeat.failed(now, error) {
                Ok(at) => *again_at = at,
                Err(_) => self.doing = Doing::Nothing,
            },
            (Doing::Once { then, .. }, Ok(seen)) => self.doing = then.after(now, seen, self.ttl, self.seed),
            (Doing::Nothing, _) => {}
        }
    }

    /// The store says that the latch may have changed.
    pub(super) fn hear(&mut self, now: Moment) {
        if let Doing::Waiting(wait) = &mut self.doing {
            wait.notified(now);
        }
    }

    pub(super) fn name(&self) -> &LockName {
        &self.name
    }
}

impl Then {
    fn after(self, now: Moment, seen: Seen, ttl: Ttl, seed: u64) -> Doing {
        let Some(LatchState { generation, expected, .. }) = seen.state else { return Doing::Nothing };
        let act = match self {
            Self::Reset => Act::Reset { generation, ttl },
            Self::Expect(count) if expected.is_none() => Act::Expect { count, generation, ttl },
            Self::Expect(_) | Self::Nothing => return Doing::Nothing,
        };
        Doing::Once { act, repeat: Repeat::new(now, seed), again_at: now, then: Self::Nothing }
    }
}
