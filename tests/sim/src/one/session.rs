//! Giving up the connections of a client, and its session where the store's entries end with one. A session lives while requests arrive, and
//! has a beat of its own.

use lock_core::{ErrorKind, Moment};

use super::backend::Translator;
use super::lane::Line;
use super::mistake::Mistake;
use super::replies::What;
use super::units::{LIVES, Session, SessionId};
use super::words::{Ask, Words};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::fault::Fault;
use crate::network::{ConnectionEnd, StoreId};

impl Translator {
    /// With a session, whose entries end with it.
    pub(crate) fn with_session(mut self, id: SessionId) -> Self {
        self.session = Some(Session { id, beat_at: Moment::ORIGIN });
        self
    }

    /// Keeps the session alive.
    pub(super) fn beat(&mut self, env: &mut Env<Words>, now: Moment) {
        if let Some(session) = self.session.as_mut().filter(|session| session.beat_at <= now) {
            session.beat_at = now + LIVES / 3;
            self.submit(env, now + LIVES / 3, What::Nothing, Ask::Beat);
        }
    }

    /// Those who hold are told first. That the store hears of it is not certain; it hears no more beats.
    pub(super) fn give_session_up(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        if self.mistake == Some(Mistake::SessionKept) {
            return Vec::new();
        }
        env.fired(Fault::SessionGivenUp);
        self.submit(env, now + LIVES, What::Nothing, Ask::EndSession);
        if self.mistake == Some(Mistake::ToldAfterwards) { Vec::new() } else { self.begin_session(env, now) }
    }

    /// The session is over, and the next one begins, on other connections. Nothing that was asked so far goes out any more.
    pub(super) fn begin_session(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        self.session = Some(Session { id: SessionId(env.number()), beat_at: now });
        let mut heard = vec![Heard::SessionEnded];
        heard.extend(self.follow(env, now, self.server));
        heard.extend(self.end(env, |_| true, ErrorKind::Unreachable));
        heard
    }

    /// Asks another server from now on, and drops all connections to the one before.
    pub(crate) fn follow(&mut self, env: &mut Env<Words>, now: Moment, server: StoreId) -> Vec<Heard> {
        self.server = server;
        for conn in self.conns() {
            env.leave(conn, ConnectionEnd::Said);
        }
        self.lanes.iter_mut().for_each(|lane| lane.line = Line::Down { again_at: now });
        self.end(env, |pending| pending.sent_on.is_some(), ErrorKind::Unreachable)
    }
}
