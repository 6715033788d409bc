//! A claim: it looks at the directory until it holds or waits, and is woken when an entry ends that it waits for.

mod permits;
mod replacing;

use std::borrow::Cow;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, FencingToken, Holder, Mode, Moment, Operation, Queueing, Slots,
};
use lock_host::{Clock, HostClock};
use lock_rules::{given_up, place_for, used_up};
use tonic::{Code, Status};

use crate::cluster::Cluster;
use crate::error::{self, BACKEND};
use crate::listed::{Listed, Turn};
use crate::place::{Beside, Place, State};
use crate::remaining::until_served;
use crate::txn;
use crate::waiters::{Waiter, Waiters};

/// How often a claim looks again because something changed while it looked. Chosen: only a bound.
const LOOKS_MAX: u32 = 16;

/// How often it looks for the slots that a waiter before it is taking. Chosen: that takes two round trips; the waiter may also have died.
const DUE_MAX: u32 = 4;

/// How often it renews a lease that is not sure to last. Chosen: the first time may find out that another leader was elected.
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
    /// From when on the times of the answer count; `None` if that is when it is delivered.
    pub(crate) since: Option<Moment>,
    /// Has the directory of the claim watched.
    pub(crate) watch: &'a (dyn Fn() -> Watching<'a> + Sync),
    /// Has somebody look soon whether its turn has come.
    pub(crate) wake: &'a (dyn Fn() + Sync),
}

/// The beginning of a watch.
pub(crate) type Watching<'a> = futures_util::future::BoxFuture<'a, Result<i64, Status>>;

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
            if is_old || !place.moving().is_empty() {
                place.renew(self.cluster).await.map_err(failed)?;
            }
            let look = self.look(place).await?;
            is_old = place.is_old();
            match look {
                // The lease may be one that was used before, and its renewal may not have counted.
                Look::Told(answer) if !is_old && place.moving().is_empty() || number >= RENEWALS_MAX => {
                    return Ok(answer);
                }
                Look::Waits(answer, since) if !is_old || number >= RENEWALS_MAX => {
                    // As the list has it: what happened later is another matter.
                    if since == Since::AnEnd {
                        (self.wake)();
                    }
                    return Ok(answer);
                }
                Look::Due(answer) if number >= DUE_MAX => return Ok(answer),
                Look::Told(_) | Look::Waits(..) | Look::Due(_) | Look::Again => {}
            }
        }
        let message = "the order of the entries changed at each read";
        Err(error::new(Operation::Acquire, ErrorKind::Unavailable, Effect::Unknown, message))
    }

    /// Looks whether the turn of a waiter has come.
    pub(crate) async fn go_on(&self, place: &mut Place) -> Result<Option<Answer>, BackendError> {
        if place.is_old() {
            place.renew(self.cluster).await.map_err(failed)?;
        }
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
        if let Some(old) = self.claim.replaces {
            return self.replace(place, old).await;
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
        let mode = self.check_use(listed)?;
        let listed = &*self.long_enough(listed, b"").await.map_err(failed)?;
        let fits = listed.turn(b"", mode) == Some(Turn::Granted);
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
        let is_above = place.is_above(listed);
        if place.is_granted {
            return self.grant(place, listed).await;
        }
        let mode = match self.check_use(listed) {
            Ok(mode) => mode,
            Err(refusal) => {
                place.delete(self.cluster).await.map_err(failed)?;
                return Err(refusal);
            }
        };
        let listed = &*self.long_enough(listed, &place.key().unwrap_or_default()).await.map_err(failed)?;
        match place.turn(listed, mode) {
            None => Ok(Look::Again),
            Some(Turn::Granted) if mode.limit().is_some() => self.take_slots(place, mode, listed).await,
            Some(Turn::Granted) if !is_above => {
                place.draw_anew(self.cluster, listed.revision).await.map_err(failed)?;
                Ok(Look::Again)
            }
            Some(Turn::Granted) => self.grant(place, listed).await,
            Some(Turn::Waits { watched, .. }) if self.claim.queueing == Queueing::Unwanted => {
                let left = place.key();
                // While all of them stand, it cannot hold.
                let stand = txn::stand(listed, &watched);
                match place.delete_if(self.cluster, stand).await.map_err(failed)? {
                    Some(_) => self.busy(listed, left.as_deref()).await,
                    None => Ok(Look::Again),
                }
            }
            Some(Turn::Waits { position, mut watched }) => {
                watched.extend([place.directory.replaced(), place.directory.limit()]);
                let waiter: Waiter = (self.claim.name.clone(), self.claim.owner);
                // The watch does not report what has ended between the list and its beginning.
                let began = (self.watch)().await.map_err(failed)?;
                let has_ended = self.waiters.wait(&waiter, watched, listed.revision);
                let since = if began > listed.revision || has_ended { Since::AnEnd } else { Since::Nothing };
                let remaining = self.remaining(listed, None).await?;
                let (holder, drawn) = holder(listed, None);
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

    /// The mode of the claim under the limit that was set. Refuses a claim for a name that is used otherwise, or for more permits.
    fn check_use(&self, listed: &Listed) -> Result<Mode, BackendError> {
        let (name, mode) = (&self.claim.name, self.claim.terms.mode);
        let mode = match &listed.changes.limit {
            Some(record) => record.apply(BACKEND, mode).map_err(|refusal| refusal.with_name(name))?,
            None => mode,
        };
        self.check_kind(listed, mode).map(|()| mode)
    }

    fn check_kind(&self, listed: &Listed, mode: Mode) -> Result<(), BackendError> {
        let asked = self.claim.terms.mode;
        match listed.first_mode().filter(|used| !used.suits(mode)) {
            Some(used) => Err(BackendError::in_other_use(BACKEND, used, asked).with_name(&self.claim.name)),
            None => Ok(()),
        }
    }

    /// Answers a claim that does not wait, or waits no longer: then the entry with the key `left` was its own.
    async fn busy(&self, listed: &Listed, left: Option<&[u8]>) -> Result<Look, BackendError> {
        let remaining = self.remaining(listed, left).await?;
        let is_held = listed.entries.iter().any(|entry| listed.holds(entry));
        let (holder, drawn) = holder(listed, None);
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
        let lease = self.claim.in_mode(place.granted_mode(listed, self.claim.terms.mode)).lease_of(tokens, slots);
        Ok(Look::Told(Answer::Granted { lease, valid_for, wanted }))
    }
}

fn failed(status: Status) -> BackendError {
    error::of(Operation::Acquire, status)
}

/// Who holds the lock beside the entry with this key, and the highest token that was drawn for the lock, if it is known.
fn holder(listed: &Listed, except: Option<&[u8]>) -> (Holder, Option<FencingToken>) {
    let tokens = |holder: &Holder| match holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.high()),
        Holder::Foreign => None,
    };
    let holds = || listed.entries.iter().filter(|entry| listed.holds(entry));
    let others = holds().filter(|entry| Some(&*entry.key) != except);
    let latest = others.map(|entry| entry.held(listed.base).holder).max_by_key(tokens).unwrap_or(Holder::Foreign);
    let drawn = holds().filter_map(|entry| tokens(&entry.held(listed.base).holder)).max();
    (latest, drawn.filter(|_| listed.is_complete()))
}
