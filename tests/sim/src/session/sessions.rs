//! Sessions: which connection one is on, when the leader hears of it, and when it ends.

use std::mem;
use std::time::Duration;

use lock_core::Moment;

use super::data::{Data, Session};
use super::store::{FOLLOWERS, Server};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Inbox, LIVES, Mistake, Say, SessionId, TICK};

/// How often the leader pings its followers: at least once a tick, on everybody's clock.
const PINGS_EVERY: Duration = TICK.saturating_sub(Duration::from_millis(20));
/// How far followers lag behind, in milliseconds.
const LAGS: [u64; 4] = [0, 0, 500, 5000];

impl Server {
    /// Which follower a connection leads to.
    #[expect(clippy::cast_possible_truncation, reason = "it is the rest of a division")]
    pub(super) fn at(conn: ConnId) -> usize {
        (conn.0 % FOLLOWERS as u64) as usize
    }

    /// A client joins its session, or begins it. A follower that is behind what the client has seen refuses.
    pub(super) fn join(&mut self, now: Moment, conn: ConnId, id: SessionId, inbox: Option<Inbox>) -> Say {
        if self.data.ended.contains(&id) {
            return Say::SessionOver;
        }
        let follower = &mut self.followers[Self::at(conn)];
        let (heard, seen, refuses) = (now, 0, false);
        let session = self.data.sessions.entry(id).or_insert(Session { heard, conn, seen, refuses });
        if follower.version < session.seen {
            self.faults.push(Fault::FollowerBehind);
            return Say::NotPrimary;
        }
        self.touched[Self::at(conn)].insert(id);
        let before = mem::replace(&mut session.conn, conn);
        if before != conn && self.conns.contains_key(&before) {
            self.faults.push(Fault::SessionMoved);
            self.leave(before);
        }
        self.conns.insert(conn, id);
        if let Some(inbox) = inbox {
            self.listeners.add(inbox, conn);
        }
        Say::Hello
    }

    /// A connection counts no more.
    pub(super) fn leave(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
        self.listeners.closed(conn);
        if self.followers[Self::at(conn)].closed(conn) {
            self.faults.push(Fault::WatchLost);
        }
    }

    /// What the leader does by itself: it pings, and ends the sessions that it has not heard of for too long.
    pub(super) fn pass_time(&mut self, now: Moment) {
        let ping = self.pinged.map_or(now, |pinged| pinged + PINGS_EVERY);
        if ping <= now {
            for id in self.touched.iter_mut().flat_map(mem::take) {
                self.data.sessions.entry(id).and_modify(|session| session.heard = ping);
            }
            // One that did not take place for a long time does now.
            self.pinged = Some(if ping + PINGS_EVERY <= now { now } else { ping });
        }
        self.expire(now);
    }

    pub(super) fn expire(&mut self, now: Moment) {
        let timeout = self.timeout();
        let (over, late): (Vec<_>, Vec<_>) = {
            let due =
                self.data.sessions.iter().filter(|(_, session)| session.is_over(now) || session.ends(timeout) <= now);
            due.map(|(id, session)| (*id, session.ends(timeout) <= now)).partition(|(_, over)| *over)
        };
        self.faults.extend(late.first().map(|_| Fault::ExpiredLate));
        over.into_iter().for_each(|(id, _)| self.end(id));
    }

    pub(super) fn timeout(&self) -> Duration {
        if self.mistake == Some(Mistake::ExpiredEarly) { LIVES / 2 } else { LIVES }
    }

    pub(super) fn end(&mut self, id: SessionId) {
        self.data.sessions.remove(&id);
        self.data.ended.insert(id);
        self.data.entries.remove(|entry| entry.tie == id);
        self.data.version += 1;
    }

    /// From now on, followers lag behind like this.
    pub(super) fn lag(&mut self, dice: &mut Dice) -> Fault {
        for follower in &mut self.followers {
            follower.lag = dice.pick(&LAGS).map(Duration::from_millis).unwrap_or_default();
        }
        Fault::Lagged
    }

    /// A follower ends, and starts again. What it has not told the leader is lost, and so are its connections.
    pub(super) fn lose_follower(&mut self, dice: &mut Dice) -> Fault {
        let lost = dice.from(0, FOLLOWERS - 1);
        let conns: Vec<_> = self.conns.keys().copied().filter(|conn| Self::at(*conn) == lost).collect();
        conns.iter().for_each(|conn| self.leave(*conn));
        self.dropped.extend(conns);
        if !mem::take(&mut self.touched[lost]).is_empty() {
            self.faults.push(Fault::TouchLost);
        }
        self.followers[lost].start_again(&self.data.entries, self.data.version);
        Fault::FollowerLost
    }

    /// Begins with other data, in which all sessions have ended.
    pub(super) fn restored(&mut self, data: Data, counter: u64) {
        self.data.ended.extend(self.data.sessions.keys());
        let (version, ended) = (self.data.version.max(data.version) + 1, self.data.ended.clone());
        self.data = Data { counter: data.counter.max(counter), version, ended, ..Data::default() };
        self.followers_start_again();
    }

    /// All that they had is lost, but what the leader has.
    pub(super) fn followers_start_again(&mut self) {
        self.touched = Default::default();
        for follower in &mut self.followers {
            follower.start_again(&self.data.entries, self.data.version);
        }
    }
}
