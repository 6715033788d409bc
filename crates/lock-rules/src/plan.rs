//! One request to a lock: what it has read so far, and what it has decided.

use lock_core::{Claim, Invalid, Lease, Limit, LockName, Mode, Moment, Owner, Slots, StoreEvent, TokenRange, Width};

use crate::periods::place_for;
use crate::position::position;
use crate::refusal::{Undone, used_up};
use crate::rows::{Changes, Hold, Notice, Place, Rows, Standing, Write};

/// How many waiters one request serves at most; the next one is notified to ask. Chosen: far more than usually fit, and little
/// work for a store that serves one request at a time.
pub(crate) const SERVED_MAX: u32 = 32;

/// The rows of a lock with the changes that are decided. They are written by [`Plan::end`].
pub(crate) struct Plan<'a, R: Rows> {
    pub(crate) rows: &'a mut R,
    pub(crate) now: Moment,
    name: &'a LockName,
    pub(crate) standing: Option<Standing>,
    /// The slots of leases that end, and those that are granted.
    returned: Vec<u32>,
    taken: Vec<u32>,
    /// The leases that are granted to waiters.
    served: Vec<Hold>,
    /// The place before the head of the queue.
    before: u64,
    head: Option<Option<Place<R::Client>>>,
    /// The owner that leaves the queue, and the limit that is set: places above it are dropped.
    leaves: Option<Owner>,
    limit: Option<Limit>,
    last_token: Option<u64>,
    writes: Vec<Write<R::Client>>,
    notices: Vec<Notice<R::Client>>,
}

impl<'a, R: Rows> Plan<'a, R> {
    pub(crate) fn new(rows: &'a mut R, name: &'a LockName) -> Result<Self, R::Error> {
        let (now, standing) = (rows.now(), rows.standing()?);
        Ok(Self {
            rows,
            now,
            name,
            standing,
            returned: Vec::new(),
            taken: Vec::new(),
            served: Vec::new(),
            before: 0,
            head: None,
            leaves: None,
            limit: None,
            last_token: None,
            writes: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// How many permits are taken.
    pub(crate) fn permits(&self) -> u32 {
        self.standing.map_or(0, |standing| standing.permits)
    }

    /// A mode in which the lock is held or, if it is free, waited for. Every claim has to suit it.
    pub(crate) fn mode(&mut self) -> Result<Option<Mode>, R::Error> {
        match self.standing {
            Some(standing) => Ok(Some(standing.mode)),
            None => Ok(self.head()?.map(|head| head.terms.mode)),
        }
    }

    /// Whether a lease of this mode can be held beside the present ones.
    pub(crate) fn fits(&self, mode: Mode) -> bool {
        let Some(Standing { mode: held, permits }) = self.standing else { return true };
        match mode {
            Mode::Shared => held == Mode::Shared,
            Mode::Permits { count, limit, .. } => {
                held.suits(mode) && permits.saturating_add(count.get()) <= limit.get()
            }
            Mode::Exclusive | _ => false,
        }
    }

    /// The first waiter.
    pub(crate) fn head(&mut self) -> Result<Option<&Place<R::Client>>, R::Error> {
        if self.head.is_none() {
            self.head = Some(self.first_place()?);
        }
        Ok(self.head.as_ref().and_then(Option::as_ref))
    }

    fn first_place(&mut self) -> Result<Option<Place<R::Client>>, R::Error> {
        let mut before = self.before;
        while let Some(mut place) = self.rows.next_place(before)? {
            let mode = &mut place.terms.mode;
            let is_dropped = self.limit.is_some_and(|limit| mode.count() > limit.get());
            if !is_dropped && Some(place.owner) != self.leaves {
                *mode = self.limit.map_or(*mode, |limit| mode.under(limit));
                return Ok(Some(place));
            }
            before = place.number;
        }
        Ok(None)
    }

    pub(crate) fn has_waiters(&mut self) -> Result<bool, R::Error> {
        Ok(self.head()?.is_some())
    }

    pub(crate) fn write(&mut self, write: Write<R::Client>) {
        self.writes.push(write);
    }

    /// Takes the owner out of the queue. Returns whether it was there.
    pub(crate) fn leave(&mut self, owner: Owner) -> Result<bool, R::Error> {
        if self.head()?.is_none() || self.rows.place(owner)?.is_none() {
            return Ok(false);
        }
        self.leaves = Some(owner);
        self.head.take_if(|head| head.as_ref().is_some_and(|head| head.owner == owner));
        self.write(Write::Leave(owner));
        Ok(true)
    }

    /// Takes the claim's place in the queue, or refreshes it. Returns its position.
    pub(crate) fn queue(&mut self, client: R::Client, claim: &Claim) -> Result<u32, R::Error> {
        let (number, joined) = match self.rows.place(claim.owner)? {
            Some(place) => (place.number, place.joined),
            None => (self.rows.last_number()?.saturating_add(1), Some(self.now)),
        };
        let Claim { owner, terms, width, note, .. } = claim.clone();
        let until = self.now + place_for(terms.ttl);
        let place = Place { number, owner, terms, width, joined, until, note, client };
        if self.head()?.is_none_or(|head| head.owner == owner) {
            self.head = Some(Some(place.clone()));
        }
        self.write(Write::Place(place));
        Ok(position(self.rows, number)?.saturating_sub(self.served_count()))
    }

    fn served_count(&self) -> u32 {
        u32::try_from(self.served.len()).unwrap_or(u32::MAX)
    }

    /// The lease that ends last.
    pub(crate) fn last_hold(&mut self) -> Result<Option<Hold>, R::Error> {
        let stored = self.rows.last_hold(None)?;
        Ok(stored.into_iter().chain(self.served.iter().cloned()).max_by_key(|hold| (hold.until, hold.owner)))
    }

    /// When a lease of this mode fits at the earliest, unless leases are renewed; `None` if it fits now.
    pub(crate) fn fits_at(&mut self, mode: Mode) -> Result<Option<Moment>, R::Error> {
        if self.fits(mode) {
            return Ok(None);
        }
        let (Some(standing), Mode::Permits { count, limit, .. }) = (self.standing, mode) else {
            return Ok(self.last_hold()?.map(|hold| hold.until));
        };
        let mut excess = standing.permits.saturating_add(count.get()).saturating_sub(limit.get());
        let mut ends = self.rows.first_ends(excess)?;
        ends.extend(self.served.iter().map(|hold| (hold.until, hold.mode.count())));
        ends.sort_unstable();
        let enough = ends.into_iter().find(|(_, permits)| {
            excess = excess.saturating_sub(*permits);
            excess == 0
        });
        Ok(enough.map(|(end, _)| end))
    }

    /// Draws tokens above all that were drawn before.
    pub(crate) fn draw(&mut self, width: Width) -> Result<TokenRange, Undone<R::Error>> {
        self.next_tokens(width)?.map_err(|invalid| Undone::Refused(used_up(R::BACKEND, invalid)))
    }

    /// The highest token that was drawn, or a number above it that is drawn next.
    pub(crate) fn last_token(&mut self) -> Result<u64, R::Error> {
        match self.last_token {
            Some(last) => Ok(last),
            None => self.rows.last_token(),
        }
    }

    /// The next tokens; `Invalid` once they are used up.
    fn next_tokens(&mut self, width: Width) -> Result<Result<TokenRange, Invalid>, R::Error> {
        let tokens = TokenRange::above(self.last_token()?, width);
        self.last_token = tokens.as_ref().map_or(self.last_token, |tokens| Some(tokens.high().get()));
        Ok(tokens)
    }

    /// The lowest free slots for the permits of this mode.
    pub(crate) fn draw_slots(&mut self, mode: Mode) -> Result<Slots, R::Error> {
        let Mode::Permits { count, .. } = mode else { return Ok(Slots::NONE) };
        let taken = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        let mut free = self.rows.free_slots(count.get().saturating_add(taken))?;
        free.append(&mut self.returned.clone());
        free.retain(|slot| !self.taken.contains(slot));
        free.sort_unstable();
        free.truncate(usize::try_from(count.get()).unwrap_or(usize::MAX));
        self.taken.extend(&free);
        Ok(Slots::new(free))
    }

    /// The first slots of a lease that has ended, for the permits of the one in its place.
    pub(crate) fn keep_slots(&mut self, ended: &Hold, mode: Mode) -> Slots {
        let count = usize::try_from(mode.count()).unwrap_or(usize::MAX);
        let kept = || ended.slots.get().iter().copied().take(count);
        self.taken.extend(kept());
        Slots::new(kept())
    }

    /// Stores a new lease beside the present ones.
    pub(crate) fn add(&mut self, hold: Hold) {
        let permits = self.permits().saturating_add(hold.mode.count());
        self.standing = Some(Standing { mode: hold.mode, permits });
        self.write(Write::Hold(hold));
    }

    /// Ends a lease. It is the only one that this request ends.
    pub(crate) fn end_hold(&mut self, hold: &Hold) -> Result<(), R::Error> {
        self.returned.extend(hold.slots.get());
        let left = self.permits().saturating_sub(hold.mode.count());
        let is_alone = match hold.mode {
            Mode::Shared => self.rows.last_hold(Some(hold.owner))?.is_none(),
            Mode::Permits { .. } => left == 0,
            Mode::Exclusive | _ => true,
        };
        self.standing = self.standing.filter(|_| !is_alone).map(|standing| Standing { permits: left, ..standing });
        self.write(Write::End(hold.owner));
        Ok(())
    }

    /// Puts another limit of the semaphore in force.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.standing = self.standing.map(|held| Standing { mode: held.mode.under(limit), ..held });
        (self.limit, self.head) = (Some(limit), None);
    }

    /// Serves the waiters that fit, in their order, up to the one that asks itself.
    ///
    /// Each lease lasts as long as its place: if the waiter has stopped meanwhile, the next one does not wait for a whole ttl.
    /// When the tokens are used up, a waiter learns of it by asking.
    pub(crate) fn serve(&mut self, before: Option<Owner>) -> Result<(), R::Error> {
        while self.served_count() < SERVED_MAX {
            let Some(next) = self.head_that_fits()?.filter(|next| Some(next.owner) != before).cloned() else { break };
            let Ok(tokens) = self.next_tokens(next.width)? else { break };
            self.hand_over(next, tokens)?;
        }
        Ok(())
    }

    fn head_that_fits(&mut self) -> Result<Option<&Place<R::Client>>, R::Error> {
        if self.standing.is_some_and(|standing| standing.mode == Mode::Exclusive) {
            return Ok(None);
        }
        let Some(mode) = self.head()?.map(|head| head.terms.mode) else { return Ok(None) };
        if self.fits(mode) { self.head() } else { Ok(None) }
    }

    fn hand_over(&mut self, place: Place<R::Client>, tokens: TokenRange) -> Result<(), R::Error> {
        let Place { number, owner, terms, note, client, .. } = place;
        let (valid_for, granted, slots) = (place_for(terms.ttl), Some(self.now), self.draw_slots(terms.mode)?);
        let lease = Lease { name: self.name.clone(), owner, tokens, terms, slots: slots.clone() };
        let hold = Hold { owner, mode: terms.mode, tokens, slots, granted, until: self.now + valid_for, note };
        (self.before, self.head) = (number, None);
        self.write(Write::Leave(owner));
        self.served.push(hold.clone());
        self.add(hold);
        self.notices.push(Notice { client, event: StoreEvent::Granted { lease, valid_for, wanted: false } });
        Ok(())
    }

    /// Tells a client that it may be served by asking.
    pub(crate) fn tell_to_ask(&mut self, client: R::Client) {
        self.notices.push(Notice { client, event: StoreEvent::Freed { name: self.name.clone() } });
    }

    pub(crate) fn tell_head_to_ask(&mut self) -> Result<(), R::Error> {
        let head = self.head()?.map(|head| head.client.clone());
        head.into_iter().for_each(|client| self.tell_to_ask(client));
        Ok(())
    }

    /// Serves the waiters that fit, and writes what was decided.
    pub(crate) fn end(mut self) -> Result<(), R::Error> {
        self.serve(None)?;
        if self.served_count() == SERVED_MAX && self.head_that_fits()?.is_some() {
            self.tell_head_to_ask()?;
        }
        if !self.served.is_empty() && self.has_waiters()? {
            for notice in &mut self.notices {
                if let StoreEvent::Granted { wanted, .. } = &mut notice.event {
                    *wanted = true;
                }
            }
        }
        if let Some(last) = self.last_token {
            self.write(Write::LastToken(last));
        }
        let Self { rows, standing, writes, notices, .. } = self;
        if writes.is_empty() && notices.is_empty() { Ok(()) } else { rows.write(Changes { writes, standing, notices }) }
    }
}
