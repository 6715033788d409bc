//! What a backend does where each entry ends with a lease of its own: it makes several requests of one.

use lock_core::{ErrorKind, Moment};

use super::backend::{Pending, Translator};
use super::leasing::Leasing;
use super::step::{At, Next};
use super::words::{Ask, Say, Words};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::network::{ConnectionEnd, Tag};

impl Translator {
    /// With leases, and one connection.
    pub(crate) fn with_leases(mut self) -> Self {
        self.leasing = Some(Leasing::new(self.mistake));
        self.lanes.truncate(1);
        self
    }

    /// The first request of several.
    pub(super) fn begin(&mut self, env: &mut Env<Words>, now: Moment, pending: Pending) -> Option<Heard> {
        let next = self.leasing.as_mut().map(|leasing| leasing.begin(now, &pending.ask, 0));
        match next {
            Some(next) => self.go_on(env, pending, next),
            None => self.send(env, pending),
        }
    }

    fn go_on(&mut self, env: &mut Env<Words>, mut pending: Pending, next: Next) -> Option<Heard> {
        match next {
            Next::Step(step) => {
                pending.step = Some(step);
                self.send(env, pending)
            }
            Next::Told(say) => self.finish(None, pending, say),
        }
    }

    /// An answer to one request of several.
    pub(super) fn stepped(&mut self, env: &mut Env<Words>, now: Moment, (tag, say): (Tag, Say)) -> Option<Heard> {
        let pending = self.pending.remove(&tag)?;
        let at = At { now, since: pending.asked_at };
        let next = match (&mut self.leasing, &pending.step) {
            (Some(leasing), Some(step)) => leasing.heard(at, &pending.ask, step, say),
            _ => Next::Told(say),
        };
        self.go_on(env, pending, next)
    }

    /// A server that does not answer in time is left for another one.
    pub(super) fn leave_silent(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        let late = self.pending.values().filter(|pending| pending.deadline <= now && self.leasing.is_some());
        let silent: Vec<_> = late.filter_map(|pending| pending.sent_on).collect();
        let mut heard = self.end(env, |pending| pending.deadline <= now, ErrorKind::Timeout);
        for conn in silent.into_iter().filter(|conn| self.conns().contains(conn)).collect::<Vec<_>>() {
            env.leave(conn, ConnectionEnd::Said);
            heard.extend(self.cut(env, now, conn));
        }
        heard
    }
}

impl Pending {
    /// What is in flight.
    pub(super) fn in_flight(&self) -> &Ask {
        self.step.as_ref().map_or(&self.ask, |step| &step.ask)
    }
}
