//! A claim: it looks at the directory until it holds or waits, and is woken when an entry ends that it waits for.

use std::borrow::Cow;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, FencingToken, Holder, Limit, Moment, Operation, Queueing, Slots,
};
use lock_host::{Clock, HostClock};
use lock_rules::{given_up, place_for, used_up};
use tonic::{Code, Status};

use crate::cluster::Cluster;
use crate::entry::{Entry, Listed, Turn};
use crate::error::{self, BACKEND};
use crate::place::{Beside, Place, State};
use crate::remaining::until_served;
use crate::txn;
use crate::waiters::{Waiter, Waiters};

/// How often a claim looks again because something changed while it looked. Chosen: only a bound.
const LOOKS_MAX: u32 = 16;

/// How often it looks for the slots that a waiter before it is taking. Chosen: that takes two round trips; the waiter may also have died.
const DUE_MAX: u32 = 4;

/// How often it renews a lease that is not sure to last. Chosen: the first one may not count, because nothing was heard of the server before.
const RENEWALS_MAX: u32 = 3;

/// What has happened after a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Nothing,
    /// An entry has ended, or may have, for which the claim waits.
    AnEnd,
}

/// One request of a claim.
pub(crate) struct Asking<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) waiters: &'a Waiters,
    pub(crate) claim: &'a Claim,
    /// From when on the times of the answer count; `None` if that is when it is told.
    pub(crate) since: Option<Moment>,
    /// Has the directory of the claim watched.
    pub(crate) watch: &'a (dyn Fn() -> Watching<'a> + Sync),
    /// Has somebody look soon whether its turn has come.
    pub(crate) wake: &'a (dyn Fn() + Sync),
}

/// The beginning of a watch.
pub(crate) type Watching<'a> = futures_util::future::BoxFuture<'a, Result<bool, Status>>;

/// What a look at the directory led to.
enum Look {
    Told(Answer),
    /// It waits. Whether something has changed since that may let it in.
    Waits(Answer, Since),
    /// Nobody holds, and the turn of a waiter has come that has not taken its slots yet.
    Due(Answer),
    /// Something changed meanwhile.
    Again,
}

impl Asking<'_> {
    /// Carries out the claim.
    pub(crate) async fn claim(&self, place: &mut Place) -> Result<Answer, BackendError> {
        // Asking again gives a lease and a place all of their time.
        let mut is_old = matches!(place.state, State::There(..));
        for number in 0..LOOKS_MAX {
            if is_old || place.marking().is_some() {
                place.renew(self.cluster).await.map_err(failed)?;
            }
            let look = self.look(place).await?;
            is_old = place.is_old();
            match look {
                // The lease may be one that was used before, and its renewal may not have counted.
                Look::Told(answer) if !is_old && place.marking().is_none() || number >= RENEWALS_MAX => {
                    return Ok(answer);
                }
                Look::Waits(answer, since) => {
                    // As the list has it: what happened later is another matter.
                    if since == Since::AnEnd {
                        (self.wake)();
                    }
                    return Ok(answer);
                }
                Look::Due(answer) if number >= DUE_MAX => return Ok(answer),
                Look::Told(_) | Look::Due(_) | Look::Again => {}
            }
        }
        let message = "the order of the entries changed with each look";
        Err(error::new(Operation::Acquire, ErrorKind::Unavailable, Effect::Unknown, message))
    }

    /// Looks whether the turn of a waiter has come.
    pub(crate) async fn go_on(&self, place: &mut Place) -> Result<Option<Answer>, BackendError> {
        place.renew(self.cluster).await.map_err(failed)?;
        for _ in 0..LOOKS_MAX {
            if !matches!(place.state, State::There(..)) {
                break;
            }
            match self.look(place).await? {
                Look::Told(answer) | Look::Due(answer) | Look::Waits(answer, Since::Nothing) => {
                    return Ok(Some(answer));
                }
                Look::Waits(_, Since::AnEnd) | Look::Again => {}
            }
        }
        Ok(None)
    }

    async fn look(&self, place: &mut Place) -> Result<Look, BackendError> {
        if matches!(place.state, State::There(..)) {
            let Some(listed) = place.list(self.cluster).await.map_err(failed)? else { return Ok(Look::Again) };
            return self.judge(place, &listed).await;
        }
        let listed = match place.write(self.cluster, self.claim, Beside::Nobody).await {
            Ok(Some(listed)) => listed,
            Ok(None) => return Err(given_up(BACKEND)),
            // Its lease had ended: another one is taken.
            Err(status) if status.code() == Code::NotFound => return Ok(Look::Again),
            // The servers have lost their data.
            Err(status) if txn::is_no_base(&status) => {
                self.cluster.check_base().await.map_err(failed)?;
                return Ok(Look::Again);
            }
            Err(status) => return Err(failed(status)),
        };
        if place.adopt(&listed) {
            return Ok(Look::Again);
        }
        if matches!(place.state, State::There(..)) {
            return self.judge(place, &listed).await;
        }
        self.join(place, &listed).await
    }

    /// Goes on with a claim that is not alone.
    async fn join(&self, place: &mut Place, listed: &Listed) -> Result<Look, BackendError> {
        self.check_use(listed)?;
        let listed = &*self.long_enough(listed, b"").await.map_err(failed)?;
        let fits = listed.turn(b"", self.claim.terms.mode) == Some(Turn::Granted);
        if !fits && self.claim.queueing == Queueing::Unwanted {
            return self.busy(listed, None).await;
        }
        if !fits {
            (self.watch)().await.map_err(failed)?;
        }
        // One that does not wait must not be in the way of others for a moment.
        let beside = match self.claim.queueing {
            Queueing::Wanted => Beside::Others,
            Queueing::Unwanted => Beside::Holders(listed.revision),
        };
        match place.write(self.cluster, self.claim, beside).await {
            Ok(Some(listed)) if matches!(place.state, State::There(..)) => {
                if listed.is_second(&place.key().unwrap_or_default()) {
                    place.delete(self.cluster).await.map_err(failed)?;
                    return Ok(Look::Again);
                }
                self.judge(place, &listed).await
            }
            Ok(Some(_)) => Ok(Look::Again),
            Ok(None) => Err(given_up(BACKEND)),
            Err(status) if status.code() == Code::NotFound => Ok(Look::Again),
            Err(status) => Err(failed(status)),
        }
    }

    /// Answers for an entry that is there.
    async fn judge(&self, place: &mut Place, listed: &Listed) -> Result<Look, BackendError> {
        if place.is_granted {
            return self.grant(place, listed).await;
        }
        if let Err(refusal) = self.check_use(listed) {
            place.delete(self.cluster).await.map_err(failed)?;
            return Err(refusal);
        }
        let listed = &*self.long_enough(listed, &place.key().unwrap_or_default()).await.map_err(failed)?;
        match place.turn(listed, self.claim.terms.mode) {
            None => Ok(Look::Again),
            Some(Turn::Granted) if self.claim.terms.mode.limit().is_some() => self.take_slots(place).await,
            Some(Turn::Granted) => self.grant(place, listed).await,
            Some(Turn::Waits { .. }) if self.claim.queueing == Queueing::Unwanted => {
                let left = place.key();
                place.delete(self.cluster).await.map_err(failed)?;
                self.busy(listed, left.as_deref()).await
            }
            Some(Turn::Waits { position, watched }) => {
                let waiter: Waiter = (self.claim.name.clone(), self.claim.owner);
                // What has ended between the list and the beginning of the watch is not told.
                let has_begun = (self.watch)().await.map_err(failed)?;
                let has_ended = self.waiters.wait(&waiter, watched, listed.revision);
                let since = if has_begun || has_ended { Since::AnEnd } else { Since::Nothing };
                let remaining = self.remaining(listed, None).await?;
                let (holder, drawn) = holder(listed);
                let valid_for = self.lasts(place).min(place_for(self.claim.terms.ttl));
                Ok(Look::Waits(Answer::Queued { position, remaining, valid_for, holder, drawn }, since))
            }
        }
    }

    /// The list, or all of it if it is too short for this key.
    async fn long_enough<'a>(&self, listed: &'a Listed, key: &[u8]) -> Result<Cow<'a, Listed>, Status> {
        match listed.turn(key, self.claim.terms.mode) {
            Some(_) => Ok(Cow::Borrowed(listed)),
            None => self.cluster.list_all(&self.cluster.directory(&self.claim.name)).await.map(Cow::Owned),
        }
    }

    /// Refuses a claim for a name that is used otherwise.
    fn check_use(&self, listed: &Listed) -> Result<(), BackendError> {
        let (name, mode) = (&self.claim.name, self.claim.terms.mode);
        match listed.first().map(Entry::mode).filter(|used| !used.suits(mode)) {
            Some(used) => Err(BackendError::in_other_use(BACKEND, used, mode).with_name(name)),
            None => Ok(()),
        }
    }

    /// Takes the lowest free slots for a waiter whose turn has come. The next look finds out whether others were faster.
    async fn take_slots(&self, place: &mut Place) -> Result<Look, BackendError> {
        let (mode, directory) = (self.claim.terms.mode, &place.directory);
        let (count, limit) = (mode.count(), mode.limit().map_or(0, Limit::get));
        let taken = self.cluster.taken_slots(directory).await.map_err(failed)?;
        let mut free: Vec<u32> = (0..limit).filter(|slot| !taken.contains(slot)).collect();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if free.len() < count {
            // Those of an entry that was deleted by hand end with its lease.
            return Ok(Look::Again);
        }
        free.truncate(count);
        place.take_slots(self.cluster, &free).await.map_err(failed)?;
        Ok(Look::Again)
    }

    /// Answers a claim that does not wait, or waits no longer: then the entry with the key `left` was its own.
    async fn busy(&self, listed: &Listed, left: Option<&[u8]>) -> Result<Look, BackendError> {
        let remaining = self.remaining(listed, left).await?;
        let is_held = listed.entries.iter().any(|entry| listed.holds(entry));
        let (holder, drawn) = holder(listed);
        let answer = Answer::Busy { remaining, holder, drawn };
        Ok(if is_held { Look::Told(answer) } else { Look::Due(answer) })
    }

    async fn remaining(&self, listed: &Listed, left: Option<&[u8]>) -> Result<Option<Duration>, BackendError> {
        until_served(self.cluster, listed, left, self.claim.terms.mode).await.map_err(failed)
    }

    fn lasts(&self, place: &Place) -> Duration {
        place.lasts(self.since.unwrap_or_else(|| HostClock.now()))
    }

    async fn grant(&self, place: &mut Place, listed: &Listed) -> Result<Look, BackendError> {
        let tokens = match listed.base.tokens(place.drawn_at, self.claim.width) {
            Ok(tokens) => tokens,
            Err(invalid) => {
                place.delete(self.cluster).await.map_err(failed)?;
                return Err(used_up(BACKEND, invalid));
            }
        };
        place.is_granted = true;
        self.waiters.leave(&(self.claim.name.clone(), self.claim.owner));
        let valid_for = self.lasts(place).min(self.claim.terms.ttl.get());
        let wanted = listed.is_wanted();
        let slots = if place.slots().is_empty() { Slots::NONE } else { Slots::new(place.slots().iter().copied()) };
        Ok(Look::Told(Answer::Granted { lease: self.claim.lease_of(tokens, slots), valid_for, wanted }))
    }
}

fn failed(status: Status) -> BackendError {
    error::of(Operation::Acquire, status)
}

/// Who holds the lock, and the highest token that was drawn for it, if that can be told.
fn holder(listed: &Listed) -> (Holder, Option<FencingToken>) {
    let held = listed.entries.iter().filter(|entry| listed.holds(entry)).map(|entry| entry.held(listed.base).holder);
    let tokens = |holder: &Holder| match holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.high()),
        Holder::Foreign => None,
    };
    let latest = held.max_by_key(tokens).unwrap_or(Holder::Foreign);
    let drawn = tokens(&latest).filter(|_| listed.is_complete());
    (latest, drawn)
}
