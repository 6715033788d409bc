//! The rules' view of a window.

use lock_core::limit::Record;
use lock_core::{FencingToken, Moment, Note, Owner};

use super::{Commit, Compared, EXPIRED_MAX, Needs, OfOwner, Window, WindowStore};
use crate::plan::SERVED_MAX;
use crate::rows::{Changes, Hold, Place, Rows, Standing, Write, ends_of};

/// The window does not have what the request asks for; one loaded for these needs does.
pub(super) struct Missing(pub(super) Needs);

/// A window, and what the request has read and decided.
pub(super) struct Decision<S: WindowStore> {
    window: Window<S::Client>,
    presence: Presence,
    depends_on_tail: bool,
    changes: Option<Changes<S::Client>>,
}

/// The meaning of an owner without a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// A claim of the owner may be in flight, and take a place at any time.
    Unsure,
    /// All claims of the owner were answered, so it takes none.
    Known,
}

impl<S: WindowStore> Decision<S> {
    pub(super) fn new(window: Window<S::Client>, presence: Presence) -> Self {
        Self { window, presence, depends_on_tail: false, changes: None }
    }

    /// What there is to commit. Expired leases are removed before anything else changes.
    pub(super) fn commit(self) -> Option<Commit<S::Client>> {
        let Self { window, depends_on_tail, changes, .. } = self;
        let Some(Changes { mut writes, standing, notices }) = changes else { return window.doubt() };
        let (before, own) = (window.first_end(), window.own().map(Compared::from));
        if let [Write::Extend(..)] = writes[..] {
            let leases = own.collect();
            return Some(Commit { version: None, tail: None, leases, before, writes, notices, permits: None });
        }
        let leases = own.chain(window.expired.iter().map(Compared::from)).collect();
        let permits = match &writes[..] {
            [Write::Place(place)] if place.number > window.tail => None,
            _ => {
                writes.splice(..0, window.ends_of_expired());
                Some(standing.map_or(0, |standing| standing.permits))
            }
        };
        let (version, tail) = (Some(window.version), depends_on_tail.then_some(window.tail));
        Some(Commit { version, tail, leases, before, writes, notices, permits })
    }

    fn missing(&self, widen: impl FnOnce(&mut Needs)) -> Missing {
        let mut needs = self.window.needs.clone();
        widen(&mut needs);
        Missing(needs)
    }

    fn of(&self, owner: Owner) -> Result<&OfOwner<S::Client>, Missing> {
        let found = self.window.owners.iter().find(|of| of.owner == owner);
        found.ok_or_else(|| self.missing(|needs| needs.owners.push(owner)))
    }

    fn needs_token(&self, token: FencingToken) -> Result<(), Missing> {
        let is_loaded = self.window.needs.token == Some(token);
        if is_loaded { Ok(()) } else { Err(self.missing(|needs| needs.token = Some(token))) }
    }

    /// Fails unless as many were loaded.
    fn needs(&self, count: u32, loaded: fn(&mut Needs) -> &mut u32) -> Result<(), Missing> {
        let mut needs = self.window.needs.clone();
        let number = loaded(&mut needs);
        if count <= *number {
            return Ok(());
        }
        *number = count.max(number.saturating_mul(2));
        Err(Missing(needs))
    }

    /// Whether all places were loaded.
    fn has_all_places(&self) -> bool {
        u32::try_from(self.window.places.len()).is_ok_and(|loaded| loaded < self.window.needs.places)
    }

    fn more_places(&self) -> Missing {
        self.missing(|needs| needs.places = needs.places.saturating_mul(2).max(SERVED_MAX + 1))
    }
}

impl<S: WindowStore> Rows for Decision<S> {
    const BACKEND: &'static str = S::BACKEND;
    type Client = S::Client;
    type Error = Missing;

    fn now(&self) -> Moment {
        self.window.now
    }

    fn standing(&mut self) -> Result<Option<Standing>, Missing> {
        Ok(self.window.last.first().map(|hold| Standing { mode: hold.mode, permits: self.window.permits_of_living() }))
    }

    fn hold(&mut self, owner: Owner) -> Result<Option<Hold>, Missing> {
        Ok(self.of(owner)?.hold.clone())
    }

    fn hold_with(&mut self, token: FencingToken) -> Result<Option<Hold>, Missing> {
        self.needs_token(token)?;
        Ok(self.window.with_token.clone())
    }

    fn last_hold(&mut self, except: Option<Owner>) -> Result<Option<Hold>, Missing> {
        Ok(self.window.last.iter().find(|hold| Some(hold.owner) != except).cloned())
    }

    fn first_ends(&mut self, permits: u32) -> Result<Vec<(Moment, u32)>, Missing> {
        self.needs(permits, |needs| &mut needs.ends)?;
        Ok(ends_of(permits, self.window.first_ends.iter().copied()))
    }

    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Missing> {
        self.needs(count, |needs| &mut needs.slots)?;
        let returned = self.window.expired.iter().flat_map(|hold| hold.slots.get());
        let mut free: Vec<u32> = self.window.free_slots.iter().chain(returned).copied().collect();
        free.sort_unstable();
        free.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(free)
    }

    fn place(&mut self, owner: Owner) -> Result<Option<Place<S::Client>>, Missing> {
        let place = self.of(owner)?.place.clone();
        self.depends_on_tail |= place.is_none() && self.presence == Presence::Unsure;
        Ok(place)
    }

    fn next_place(&mut self, number: u64) -> Result<Option<Place<S::Client>>, Missing> {
        let next = self.window.places.iter().find(|place| place.number > number).cloned();
        if next.is_none() && !self.has_all_places() {
            return Err(self.more_places());
        }
        self.depends_on_tail |= next.is_none();
        Ok(next)
    }

    fn places_before(&mut self, number: u64, most: u32) -> Result<u32, Missing> {
        self.needs(most, |needs| &mut needs.numbers)?;
        let before = self.window.numbers.iter().zip(0..most).take_while(|(counted, _)| **counted < number).count();
        Ok(u32::try_from(before).unwrap_or(most))
    }

    fn last_number(&mut self) -> Result<u64, Missing> {
        self.depends_on_tail = true;
        Ok(self.window.tail)
    }

    fn queued_above(&mut self, permits: u32) -> Result<Vec<Place<S::Client>>, Missing> {
        if self.window.needs.above != Some(permits) {
            return Err(self.missing(|needs| needs.above = Some(permits)));
        }
        self.depends_on_tail = true;
        Ok(self.window.above.clone())
    }

    fn is_given_up(&mut self, owner: Owner) -> Result<bool, Missing> {
        Ok(self.of(owner)?.is_given_up)
    }

    fn limit(&mut self) -> Result<Option<Record>, Missing> {
        Ok(self.window.limit.clone())
    }

    fn last_token(&mut self) -> Result<u64, Missing> {
        Ok(self.window.last_token)
    }

    fn revoked_by(&mut self, highest: FencingToken) -> Result<Option<Note>, Missing> {
        self.needs_token(highest)?;
        Ok(self.window.revoked_by.clone())
    }

    fn write(&mut self, changes: Changes<S::Client>) -> Result<(), Missing> {
        self.changes = Some(changes);
        Ok(())
    }
}

impl<C> Window<C> {
    fn permits_of_living(&self) -> u32 {
        let expired: u32 = self.expired.iter().map(|hold| hold.mode.count()).sum();
        self.permits.saturating_sub(expired)
    }

    fn ends_of_expired(&self) -> Vec<Write<C>> {
        self.expired.iter().map(|hold| Write::End(hold.owner)).collect()
    }

    /// The living leases that the request is about.
    fn own(&self) -> impl Iterator<Item = &Hold> {
        self.owners.iter().filter_map(|of| of.hold.as_ref()).chain(&self.with_token)
    }

    /// When the first expires of what the request may act on: its leases, and places.
    fn first_end(&self) -> Option<Moment> {
        let places = self.owners.iter().filter_map(|of| of.place.as_ref()).chain(&self.places).chain(&self.above);
        self.own().map(|hold| hold.until).chain(places.map(|place| place.until)).min()
    }

    /// Makes sure that a lease that the request is about has expired: it may have been renewed after it was read, and before the clock was.
    fn doubt(&self) -> Option<Commit<C>> {
        let has_token = |hold: &Hold| self.needs.token.is_some_and(|token| hold.tokens.contains(token));
        let is_own = |hold: &&Hold| self.needs.owners.contains(&hold.owner) || has_token(hold);
        let leases: Vec<_> = self.expired.iter().filter(is_own).map(Compared::from).collect();
        let (version, tail, before, permits) = (None, None, None, None);
        let commit = Commit { version, tail, leases, before, writes: Vec::new(), notices: Vec::new(), permits };
        Some(commit).filter(|commit| !commit.leases.is_empty())
    }

    /// Removes the expired leases, if there may be more of them than were loaded.
    pub(super) fn sweep(&self) -> Option<Commit<C>> {
        (self.expired.len() >= EXPIRED_MAX).then(|| Commit {
            version: Some(self.version),
            tail: None,
            leases: self.expired.iter().map(Compared::from).collect(),
            before: None,
            writes: self.ends_of_expired(),
            notices: Vec::new(),
            permits: Some(self.permits_of_living()),
        })
    }
}
