//! The server: the entries of one lock are in the order in which they came, and the first of them holds.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::latch::{LatchState, Seen};
use lock_core::{
    Answer, BackendError, Capabilities, Certainty, Claim, Effect, EntriesEnd, ErrorKind, Fenced, FencingToken, Holder,
    Lease, LockName, Moment, Operation, Owner, ReleaseRequest, Released, Renewed, Slots, StoreEvent, TokenRange, Ttl,
};

use super::data::{Data, Entry, Session};
use crate::client::Usage;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;
use crate::one::{
    Ask, Inbox, LIVES, Listeners, Mistake, Model, Order, Outcome, Refused, Say, Seat, SessionId, Stored, micros,
};

/// The store, and who is connected.
#[derive(Debug, Default)]
pub(super) struct Server {
    data: Data,
    conns: BTreeMap<ConnId, SessionId>,
    listeners: Listeners,
    granted: Vec<Lease>,
    published: Vec<(Inbox, StoreEvent)>,
}

impl Server {
    fn answer(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Say {
        if let Ask::Revoke(name, token) = ask {
            return Say::Revoke(self.revoke(name, *token));
        }
        if let Ask::Join(id, _) = ask
            && !self.data.ended.contains(id)
        {
            self.conns.insert(conn, *id);
            self.data.sessions.entry(*id).or_insert(Session { ends: now, refuses: false });
        }
        let Some(id) = self.conns.get(&conn).copied() else { return Say::SessionOver };
        let Some(session) = self.data.sessions.get_mut(&id) else { return Say::SessionOver };
        session.ends = now + LIVES;
        match ask {
            Ask::Acquire(claim, seat) => Say::Acquire(self.acquire(id, claim, *seat)),
            Ask::Renew(leases) => Say::Renew(leases.iter().map(|lease| self.renew(lease)).collect()),
            Ask::Release(request) => Say::Release(self.release(id, request)),
            Ask::Fence(lease) if self.entry(lease).is_some() => Say::Fence(Fenced::Acknowledged),
            Ask::Fence(_) => Say::Fence(Fenced::NotHeld),
            Ask::EndSession => {
                self.end(id);
                Say::SessionOver
            }
            Ask::Latch(..) => Say::Latch(Seen { state: None, told: false }),
            Ask::Join(..) | Ask::Hello(_) | Ask::Beat | Ask::Topology => Say::Hello,
            Ask::Revoke(..) | Ask::ForeignSet(..) | Ask::ForeignDelete(..) => Say::Foreign(false),
        }
    }

    fn acquire(&mut self, session: SessionId, claim: &Claim, seat: Seat) -> Result<Answer, Refused> {
        if self.data.barred.contains(&(session, claim.owner)) {
            return Err(Refused::GivenUp);
        }
        let is_free = self.of(&claim.name).next().is_none();
        let is_known = self.of(&claim.name).any(|entry| entry.claim.owner == claim.owner);
        if !is_known && (is_free || seat != Seat::Unwanted) {
            self.data.entries.push(Entry { session, claim: claim.clone(), seat, tokens: None });
        }
        self.serve(&claim.name)?;
        let wanted = self.of(&claim.name).nth(1).is_some();
        let place = self.of(&claim.name).position(|entry| entry.claim.owner == claim.owner);
        let Some(lease) = self.of(&claim.name).next().and_then(Entry::lease) else { return Err(Refused::Spent) };
        let (remaining, drawn) = (None, FencingToken::new(self.data.counter).ok());
        let holder = Holder::Leasehold { tokens: lease.tokens, note: claim.note.clone() };
        Ok(match place {
            Some(0) => Answer::Granted { valid_for: valid_for(lease.terms.ttl), lease, wanted },
            Some(before) => {
                let position = u32::try_from(before).unwrap_or(u32::MAX);
                Answer::Queued { position, remaining, valid_for: LIVES, holder, drawn }
            }
            None => Answer::Busy { remaining, holder, drawn },
        })
    }

    fn renew(&self, lease: &Lease) -> Renewed {
        let wanted = self.of(&lease.name).nth(1).is_some();
        match self.entry(lease) {
            Some(_) => Renewed::Renewed { valid_for: valid_for(lease.terms.ttl), wanted },
            None => Renewed::NotHeld,
        }
    }

    fn release(&mut self, session: SessionId, request: &ReleaseRequest) -> Result<Released, Refused> {
        if self.data.sessions.get(&session).is_some_and(|session| session.refuses) {
            let message = "this session may not delete anything";
            let error = BackendError::new("sim", Operation::Release, ErrorKind::Denied, Effect::None, message);
            return Err(Refused::Other(error));
        }
        if request.certainty == Certainty::Unknown {
            self.data.barred.insert((session, request.owner));
        }
        Ok(match self.delete(|entry| entry.claim.owner == request.owner).first() {
            Some(entry) if entry.tokens.is_some() => Released::Released,
            Some(_) => Released::Left,
            None => Released::NotHeld,
        })
    }

    fn revoke(&mut self, name: &LockName, token: FencingToken) -> Revoked {
        let spans = |tokens: TokenRange| tokens.low() <= token && token <= tokens.high();
        let deleted = self.delete(|entry| entry.claim.name == *name && entry.tokens.is_some_and(spans));
        if deleted.is_empty() { Revoked::NotHeld } else { Revoked::Revoked }
    }

    /// Ends the sessions that have heard of nobody for too long.
    fn expire(&mut self, now: Moment) {
        let over = self.data.sessions.iter().filter(|(_, session)| session.ends <= now);
        let over: Vec<_> = over.map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.end(id));
    }

    fn end(&mut self, id: SessionId) {
        self.data.sessions.remove(&id);
        self.data.ended.insert(id);
        self.data.barred.retain(|(session, _)| *session != id);
        self.delete(|entry| entry.session == id);
    }

    /// Deletes entries, and serves those behind them.
    fn delete(&mut self, which: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let (deleted, left): (Vec<_>, Vec<_>) = mem::take(&mut self.data.entries).into_iter().partition(which);
        self.data.entries = left;
        for entry in &deleted {
            _ = self.serve(&entry.claim.name);
        }
        deleted
    }

    /// The first entry of a lock holds it. It is told, and asks how long it may rely on that.
    fn serve(&mut self, name: &LockName) -> Result<(), Refused> {
        let counter = self.data.counter;
        let first = self.data.entries.iter_mut().find(|entry| entry.claim.name == *name);
        let Some(first) = first.filter(|entry| entry.tokens.is_none()) else { return Ok(()) };
        let tokens = TokenRange::above(counter, first.claim.width).map_err(|_| Refused::Spent)?;
        first.tokens = Some(tokens);
        self.data.counter = tokens.high().get();
        if let Some(lease) = first.lease() {
            self.granted.push(lease.clone());
            if let Seat::Told(inbox) = first.seat {
                let event = StoreEvent::Granted { lease, valid_for: Duration::ZERO, wanted: false };
                self.published.push((inbox, event));
            }
        }
        Ok(())
    }

    fn of(&self, name: &LockName) -> impl Iterator<Item = &Entry> {
        self.data.entries.iter().filter(move |entry| entry.claim.name == *name)
    }

    /// The entry of a lease, if it is stored.
    fn entry(&self, lease: &Lease) -> Option<&Entry> {
        self.data.entries.iter().find(|entry| entry.lease().as_ref() == Some(lease))
    }

    /// Begins with other data, and no sessions: a restored entry would never end.
    fn restored(&mut self, now: Moment, data: Data) {
        let counter = data.counter.max(micros(now));
        self.data = Data { counter, version: data.version + 1, ended: data.ended, ..Data::default() };
    }
}

/// How long a lease surely lasts without another request.
fn valid_for(ttl: Ttl) -> Duration {
    ttl.get().min(LIVES)
}

impl Model for Server {
    type Data = Data;

    const TTLS: &'static [Duration] =
        &[Duration::from_millis(600), Duration::from_secs(3), Duration::from_secs(3), Duration::from_secs(12)];
    const REPEATS: &'static [u32] = &[0, 50];
    const ORDER: Order = Order::OfThoseWhoListen;

    fn new(_: &mut Dice, _: Option<Mistake>) -> Self {
        Self::default()
    }

    fn can(capabilities: Capabilities) -> Capabilities {
        capabilities.with_entries_end(EntriesEnd::WithSession)
    }

    fn usage(_: &mut Dice) -> Usage {
        Usage::Mutex
    }

    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        if let Ask::Join(_, Some(inbox)) = ask {
            self.listeners.add(*inbox, conn);
        }
        self.data.version += 1;
        self.expire(now);
        let say = self.answer(now, conn, ask);
        Outcome { say, published: mem::take(&mut self.published), granted: mem::take(&mut self.granted) }
    }

    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.on(inbox)
    }

    fn closed(&mut self, conn: ConnId) {
        self.listeners.closed(conn);
    }

    fn data(&self) -> &Data {
        &self.data
    }

    fn flush(&mut self, now: Moment) {
        let data = Data { version: self.data.version, ..Data::default() };
        self.restored(now, data);
    }

    /// With its own data, sessions go on from now. With earlier ones, they have ended.
    fn start_again(&mut self, now: Moment, data: Data) {
        self.listeners.clear();
        self.conns.clear();
        if data.version == self.data.version {
            self.data.sessions.values_mut().for_each(|session| session.ends = now + LIVES);
        } else {
            self.restored(now, data);
        }
    }

    /// From now on a session refuses to release anything.
    fn go_wrong(&mut self, now: Moment, dice: &mut Dice) -> Option<Fault> {
        self.expire(now);
        let ids: Vec<_> = self.data.sessions.keys().copied().collect();
        let session = self.data.sessions.get_mut(&dice.pick(&ids)?)?;
        session.refuses = true;
        Some(Fault::ReleasesRefused)
    }

    fn latches() -> Vec<LockName> {
        Vec::new()
    }

    fn latch(&mut self, _: Moment, _: &LockName) -> Option<LatchState> {
        None
    }

    fn owners(&self) -> BTreeSet<Owner> {
        self.data.entries.iter().map(|entry| entry.claim.owner).collect()
    }

    fn holds(&self, now: Moment, name: &LockName) -> Vec<Stored> {
        let Some(Entry { session, claim, tokens: Some(tokens), .. }) = self.of(name).next() else { return Vec::new() };
        let until = self.data.sessions.get(session).map(|session| session.ends).filter(|ends| now < *ends);
        let stored = |until| Stored { owner: claim.owner, tokens: *tokens, slots: Slots::NONE, until };
        until.map(stored).into_iter().collect()
    }

    /// Everybody is at rest, so an entry that is left is one that nobody wants.
    fn left_over(&mut self, now: Moment, _: &[LockName]) -> Option<String> {
        self.expire(now);
        self.data.entries.first().map(|entry| format!("{entry:?}"))
    }
}
