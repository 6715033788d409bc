//! What a leader and its followers answer.

use lock_core::inspect::Revoked;
use lock_core::latch::Seen;
use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, FencingToken, Holder, Lease, LockName, Mode, Moment, Operation,
    ReleaseRequest, Released, Renewed, StoreEvent, TokenRange,
};

use super::entries::{Entry, Turn};
use super::follower::Watch;
use super::store::{FOLLOWERS, Server};
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{Ask, LIVES, Mistake, Refused, Say, Seat, SessionId};

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
        self.followers[Self::at(conn)].touched.insert(id);
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
        let woken = self.followers[Self::at(conn)].catch_up(&self.data);
        self.wake(woken);
    }

    /// Followers get what the leader has, each in its time.
    pub(super) fn replicate(&mut self, now: Moment) {
        for at in 0..FOLLOWERS {
            let follower = &mut self.followers[at];
            if follower.is_due(now, &self.data) {
                let woken = follower.catch_up(&self.data);
                self.faults.extend(woken.first().filter(|_| !follower.lag.is_zero()).map(|_| Fault::WatchLate));
                self.wake(woken);
            }
        }
    }

    /// Those who slept look again.
    fn wake(&mut self, woken: Vec<Watch>) {
        self.published.extend(woken.into_iter().map(|watch| (watch.inbox, StoreEvent::Freed { name: watch.name })));
    }

    /// Who has no entry yet creates one. Then the order says whether it holds, as it is at the follower at least since then.
    fn acquire(&mut self, conn: ConnId, session: SessionId, claim: &Claim, seat: Seat) -> Result<Answer, Refused> {
        let (name, at) = (&claim.name, Self::at(conn));
        let entries = &self.followers[at].entries;
        if entries.entry(claim.owner).is_none() {
            if seat == Seat::Unwanted && !entries.is_free_for(name, claim.terms.mode) {
                return self.busy(conn, claim);
            }
            self.create(conn, session, claim)?;
        } else if self.followers[at].version < self.data.version {
            self.faults.push(Fault::StaleRead);
        }
        let entries = &self.followers[at].entries;
        let own = entries.entry(claim.owner).and_then(|own| Some((own, entries.turn(name, own.key())?)));
        let Some((own, turn)) = own else { return Err(Refused::GivenUp) };
        match turn {
            Turn::Holds => {
                let (lease, valid_for) = (own.lease(), claim.terms.ttl.get());
                Ok(Answer::Granted { lease, valid_for, wanted: entries.is_wanted(name) })
            }
            Turn::Waits { .. } if seat == Seat::Unwanted => {
                self.delete(|entry| entry.owner() == claim.owner);
                self.busy(conn, claim)
            }
            Turn::Waits { position, watched } => {
                let (waits, (holder, drawn)) = (own.key(), self.holder(conn, claim)?);
                if let Seat::Told(inbox) = seat {
                    let (name, watched) = (name.clone(), self.watched(conn, claim, watched));
                    self.followers[at].watch(Watch { conn, inbox, name, waits, watched });
                }
                Ok(Answer::Queued { position, remaining: None, valid_for: LIVES, holder, drawn })
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

    fn busy(&self, conn: ConnId, claim: &Claim) -> Result<Answer, Refused> {
        let (holder, drawn) = self.holder(conn, claim)?;
        Ok(Answer::Busy { remaining: None, holder, drawn })
    }

    /// Who has the first entry, and its highest token.
    fn holder(&self, conn: ConnId, claim: &Claim) -> Result<(Holder, Option<FencingToken>), Refused> {
        let first = self.followers[Self::at(conn)].entries.of(&claim.name).next().ok_or(Refused::GivenUp)?;
        Ok((Holder::Leasehold { tokens: first.tokens, note: claim.note.clone() }, Some(first.tokens.high())))
    }

    fn renew(&self, conn: ConnId, session: SessionId, lease: &Lease) -> Renewed {
        let is_it = |entry: &Entry| entry.session == session && entry.lease() == *lease;
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
        Ok(match turn {
            Some(Turn::Holds) => Released::Released,
            Some(Turn::Waits { .. }) => Released::Left,
            None => Released::NotHeld,
        })
    }

    fn revoke(&mut self, name: &LockName, token: FencingToken) -> Revoked {
        let spans = |tokens: TokenRange| tokens.low() <= token && token <= tokens.high();
        let holder = self.data.entries.holders(name).find(|entry| spans(entry.tokens)).map(Entry::owner);
        let Some(owner) = holder else { return Revoked::NotHeld };
        self.delete(|entry| entry.owner() == owner);
        Revoked::Revoked
    }

    fn delete(&mut self, which: impl Fn(&Entry) -> bool) {
        if !self.data.entries.remove(which).is_empty() {
            self.data.version += 1;
        }
    }
}
