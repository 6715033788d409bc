//! The session of a client: its beat, and how long it is proved to last.

use std::time::Duration;

use lock_core::{Answer, Moment, Renewed};
use lock_rules::SessionProof;

use super::mistake::Mistake;
use super::units::{LIVES, SessionId, TICK};
use super::words::{Ask, Say};

/// The present session of a client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) beat_at: Moment,
    proof: SessionProof,
}

impl Session {
    /// One that nobody has asked for before.
    pub(super) fn new(id: SessionId, now: Moment) -> Self {
        Self { id, beat_at: now, proof: SessionProof::new(now, LIVES, TICK) }
    }

    /// The server has answered.
    pub(super) fn answered(&mut self, mistake: Option<Mistake>, ask: &Ask, asked_at: Moment, now: Moment) {
        match (ask.is_write(), mistake) {
            (true, Some(Mistake::NewestProves)) => self.proof = SessionProof::new(asked_at, LIVES, TICK),
            (true, _) => self.proof.write(asked_at, now),
            (false, _) => self.proof.answer(asked_at, now),
        }
    }

    pub(super) fn disconnected(&mut self, now: Moment) {
        self.proof.disconnect(now);
    }

    /// An answer that is valid no longer than the session. `None` if little of that is proved: then the request waits for a proof, and
    /// ends before there is one.
    pub(super) fn relied_on(&self, now: Moment, mut say: Say) -> Option<Say> {
        let lasts = Some(self.proof.lasts(now)).filter(|lasts| *lasts >= LIVES / 4);
        for valid_for in validities(&mut say) {
            *valid_for = lasts?.min(*valid_for);
        }
        Some(say)
    }

    /// What keeps it alive: a read or, once little is proved, a write.
    pub(super) fn beat(&mut self, now: Moment) -> Ask {
        self.beat_at = now + TICK / 2;
        if self.proof.lasts(now) < LIVES / 2 { Ask::CatchUp } else { Ask::Beat }
    }
}

/// How long what an answer says is valid.
fn validities(say: &mut Say) -> Vec<&mut Duration> {
    if let Say::Acquire(Ok(Answer::Granted { valid_for, .. } | Answer::Queued { valid_for, .. })) = say {
        return vec![valid_for];
    }
    let Say::Renew(answers) = say else { return Vec::new() };
    answers.iter_mut().filter_map(validity).collect()
}

fn validity(answer: &mut Renewed) -> Option<&mut Duration> {
    if let Renewed::Renewed { valid_for, .. } = answer { Some(valid_for) } else { None }
}
