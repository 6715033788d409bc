//! What a backend does where the store's entries end with a session: it keeps the session alive, relies on it only as far as that is proved, and
//! begins the next one.

use lock_core::{ErrorKind, Moment};

use super::backend::Translator;
use super::lane::Line;
use super::mistake::Mistake;
use super::replies::What;
use super::session::Session;
use super::units::{LIVES, SessionId, TICK};
use super::words::{Ask, Say, Words};
use crate::client::{Backend, Heard};
use crate::env::Env;
use crate::fault::Fault;
use crate::network::{ConnId, ConnectionEnd, StoreId, Tag};

impl Translator {
    /// With a session, whose entries end with it, and one connection.
    pub(crate) fn with_session(mut self, id: SessionId, now: Moment) -> Self {
        self.session = Some(Session::new(id, now));
        self.lanes.truncate(1);
        self
    }

    /// Keeps the session alive.
    pub(super) fn beat(&mut self, env: &mut Env<Words>, now: Moment) {
        if let Some(session) = self.session.as_mut().filter(|session| session.beat_at <= now) {
            let ask = session.beat(now);
            self.submit(env, (now, TICK), What::Nothing, ask);
        }
    }

    /// Those who hold are told first. That the store hears of it is not certain; it hears no more beats.
    pub(super) fn give_session_up(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        if self.mistake == Some(Mistake::SessionKept) {
            return Vec::new();
        }
        env.fired(Fault::SessionGivenUp);
        self.submit(env, (now, LIVES), What::Nothing, Ask::EndSession);
        if self.mistake == Some(Mistake::ToldAfterwards) { Vec::new() } else { self.begin_session(env, now) }
    }

    /// The session is over, or on another connection.
    pub(super) fn refused(&mut self, env: &mut Env<Words>, now: Moment, conn: ConnId, say: &Say) -> Vec<Heard> {
        if *say == Say::SessionOver {
            env.fired(Fault::SessionLost);
            return self.begin_session(env, now);
        }
        env.leave(conn, ConnectionEnd::Said);
        self.cut(env, now, conn)
    }

    /// An answer as far as the session is proved to last, if there is one.
    pub(super) fn relied_on(&mut self, now: Moment, tag: Tag, say: Say) -> Option<Say> {
        let (Some(session), Some(pending)) = (&mut self.session, self.pending.get(&tag)) else { return Some(say) };
        session.answered(self.mistake, &pending.ask, pending.asked_at, now);
        session.relied_on(now, say)
    }

    /// The session is over, and the next one begins, on other connections. Nothing that was asked so far goes out any more.
    pub(super) fn begin_session(&mut self, env: &mut Env<Words>, now: Moment) -> Vec<Heard> {
        self.session = Some(Session::new(SessionId(env.number()), now));
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
