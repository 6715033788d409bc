//! What a leader and its followers answer.

use lock_core::inspect::Revoked;
use lock_core::latch::Seen;
use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, FencingToken, Lease, LockName, Mode, Moment, Operation,
    ReleaseRequest, Released, Renewed, TokenRange,
};

use super::store::{FOLLOWERS, Server};
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Ask, LIVES, Mistake, Refused, Say, Seat, SessionId};
use crate::ordered::{Entry, Judged, Turn, Watch};

impl Server {
    pub(super) fn answer(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Say {
        if let Ask::Revoke(name, token) = ask {
            return Say::Revoke(self.revoke(name, *token));
        }
        if let Ask::Join(id, inbox) = ask {
            return self.join(now, conn, *id, *inbox);
        }
        let Some(id) = self.conns.get(&conn).copied() else { return Say::SessionMoved };
        if !self.data.sessions.contains_key(&id) {
            return Say::SessionOver;
        }
        self.touched[Self::at(conn)].insert(id);
        let say = match ask {
            Ask::Acquire(claim, seat) => Say::Acquire(self.acquire(conn, id, claim, *seat)),
            Ask::Renew(leases) => Say::Renew(leases.iter().map(|lease| self.renew(conn, id, lease)).collect()),
            Ask::Release(request) => Say::Release(self.release(id, request)),
            Ask::EndSession => {
                self.end(id);
                Say::SessionOver
            }
            Ask::Latch(..) => Say::Latch(Seen { state: None, told: false }),
            Ask::Join(..) | Ask::Hello(_) | Ask::Beat | Ask::CatchUp | Ask::Topology => Say::Hello,
            Ask::Fence(_) | Ask::Revoke(..) | Ask::ForeignSet(..) | Ask::ForeignDelete(..) => Say::Foreign(false),
            Ask::Grant(_) | Ask::KeepAlive(_) | Ask::Look(_) | Ask::Txn(..) => Say::NoLease,
        };
        if ask.is_write() {
            self.catch_up(conn);
        }
        let seen = self.followers[Self::at(conn)].version;
        self.data.sessions.entry(id).and_modify(|session| session.seen = seen);
        say
    }

    /// The follower of this connection gets what the leader has.
    fn catch_up(&mut self, conn: ConnId) {
        let woken = self.followers[Self::at(conn)].catch_up(&self.data.entries, self.data.version);
        self.wake(woken);
    }

    /// Followers get what the leader has, each in its time.
    pub(super) fn replicate(&mut self, now: Moment) {
        for at in 0..FOLLOWERS {
            let follower = &mut self.followers[at];
            if follower.is_due(now, self.data.version) {
                let woken = follower.catch_up(&self.data.entries, self.data.version);
                self.faults.extend(woken.first().filter(|_| !follower.lag.is_zero()).map(|_| Fault::WatchLate));
                self.wake(woken);
            }
        }
    }

    /// Those who slept look again.
    fn wake(&mut self, woken: Vec<Watch>) {
        self.published.extend(woken.into_iter().map(Watch::wake));
    }

    /// Who has no entry yet creates one. Then the order says whether it holds, as it is at the follower at least since then.
    fn acquire(&mut self, conn: ConnId, session: SessionId, claim: &Claim, seat: Seat) -> Result<Answer, Refused> {
        let (name, at) = (&claim.name, Self::at(conn));
        let entries = &self.followers[at].entries;
        if entries.entry(claim.owner).is_none() {
            if seat == Seat::Unwanted && !entries.is_free_for(name, claim.terms.mode) {
                return self.followers[at].busy(claim);
            }
            self.create(conn, session, claim)?;
        } else if self.followers[at].version < self.data.version {
            self.faults.push(Fault::StaleRead);
        }
        match self.followers[at].judge(claim, LIVES)? {
            Judged::Holds(answer) => Ok(answer),
            Judged::Waits { .. } if seat == Seat::Unwanted => {
                self.delete(|entry| entry.owner() == claim.owner);
                self.followers[at].busy(claim)
            }
            Judged::Waits { answer, waits, watched } => {
                if let Seat::Told(inbox) = seat {
                    let (name, watched) = (name.clone(), self.watched(conn, claim, watched));
                    self.followers[at].watch(Watch { conn, inbox, name, waits, watched });
                }
                Ok(answer)
            }
        }
    }

    /// The leader creates the entry of a claim, unless there is one, and the follower has it before it answers.
    fn create(&mut self, conn: ConnId, session: SessionId, claim: &Claim) -> Result<(), Refused> {
        if self.data.entries.entry(claim.owner).is_none() {
            let tokens = TokenRange::above(self.data.counter, claim.width).map_err(|_| Refused::Spent)?;
            let entry = Entry::new(session, claim, tokens);
            self.data.counter = tokens.high().get();
            self.data.version += 1;
            self.granted.push(entry.lease());
            self.data.entries.add(entry.clone());
            if self.mistake == Some(Mistake::OldListBelieved) {
                self.followers[Self::at(conn)].entries.add(entry);
                return Ok(());
            }
        }
        self.catch_up(conn);
        Ok(())
    }

    /// Whose end wakes a waiter.
    fn watched(&self, conn: ConnId, claim: &Claim, watched: Vec<FencingToken>) -> Vec<FencingToken> {
        if self.mistake == Some(Mistake::PredecessorWatched) {
            let entries = self.followers[Self::at(conn)].entries.of(&claim.name);
            let before = entries.take_while(|entry| entry.owner() != claim.owner).last();
            return before.map(Entry::key).into_iter().collect();
        }
        watched
    }

    fn renew(&self, conn: ConnId, session: SessionId, lease: &Lease) -> Renewed {
        let is_it = |entry: &Entry<SessionId>| entry.tie == session && entry.lease() == *lease;
        if !self.data.entries.all().iter().any(is_it) {
            return Renewed::NotHeld;
        }
        let is_shared = lease.terms.mode != Mode::Exclusive;
        let wanted = is_shared && self.followers[Self::at(conn)].entries.is_wanted(&lease.name);
        Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted }
    }

    fn release(&mut self, session: SessionId, request: &ReleaseRequest) -> Result<Released, Refused> {
        if self.data.sessions.get(&session).is_some_and(|session| session.refuses) {
            let message = "this session may not delete anything";
            let error = BackendError::new("sim", Operation::Release, ErrorKind::Denied, Effect::None, message);
            return Err(Refused::Other(error));
        }
        let entries = &self.data.entries;
        let turn = entries.entry(request.owner).and_then(|own| entries.turn(&request.name, own.key()));
        self.delete(|entry| entry.owner() == request.owner);
        Ok(Turn::released(turn.as_ref()))
    }

    fn revoke(&mut self, name: &LockName, token: FencingToken) -> Revoked {
        let Some(owner) = self.data.entries.holder_with(name, token) else { return Revoked::NotHeld };
        self.delete(|entry| entry.owner() == owner);
        Revoked::Revoked
    }

    fn delete(&mut self, which: impl Fn(&Entry<SessionId>) -> bool) {
        if !self.data.entries.remove(which).is_empty() {
            self.data.version += 1;
        }
    }
}
