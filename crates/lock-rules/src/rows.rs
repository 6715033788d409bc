//! The rows of one lock, and how a request changes them.

use lock_core::inspect::{Held, Waiter};
use lock_core::limit::Record;
use lock_core::{Claim, FencingToken, Holder, Mode, Moment, Note, Owner, Slots, StoreEvent, Terms, TokenRange, Width};

/// The rows of one lock at one moment, for one request.
///
/// A row that has expired at [`Rows::now`] is not there: no method returns it. Reads change nothing. A request calls
/// [`Rows::write`] at most once, as its last step, so a request that fails before it has written nothing.
///
/// Between the first read and the write, no other request may change rows of the same lock or draw a token from the same counter. In a
/// database, a request first locks a row that each lock has, and reads the clock after that.
///
/// A request should cost the same however many leases hold the lock and however many clients wait: every method but
/// [`Rows::hold_with`] and [`Rows::queued_above`] needs only a bounded number of rows.
pub trait Rows {
    /// The store's name in errors.
    const BACKEND: &'static str;
    /// The address at which a waiter is notified.
    type Client: Clone;
    /// The error of a read or the write.
    type Error;

    /// The store's clock when the rows were read.
    fn now(&self) -> Moment;

    /// How the lock is held; `None` if it is free.
    ///
    /// # Errors
    /// The store's.
    fn standing(&mut self) -> Result<Option<Standing>, Self::Error>;

    /// The lease of this owner.
    ///
    /// # Errors
    /// The store's.
    fn hold(&mut self, owner: Owner) -> Result<Option<Hold>, Self::Error>;

    /// The lease whose tokens include this one.
    ///
    /// # Errors
    /// The store's.
    fn hold_with(&mut self, token: FencingToken) -> Result<Option<Hold>, Self::Error>;

    /// The lease that ends last, except the one of this owner.
    ///
    /// # Errors
    /// The store's.
    fn last_hold(&mut self, except: Option<Owner>) -> Result<Option<Hold>, Self::Error>;

    /// The ends of the leases that end first, each with its number of permits: just enough of them to free this many permits.
    ///
    /// # Errors
    /// The store's.
    fn first_ends(&mut self, permits: u32) -> Result<Vec<(Moment, u32)>, Self::Error>;

    /// The lowest free slots, as many as `count`. Slots begin at 0.
    ///
    /// # Errors
    /// The store's.
    fn free_slots(&mut self, count: u32) -> Result<Vec<u32>, Self::Error>;

    /// The place of this owner.
    ///
    /// # Errors
    /// The store's.
    fn place(&mut self, owner: Owner) -> Result<Option<Place<Self::Client>>, Self::Error>;

    /// The first place whose number is above `number`.
    ///
    /// # Errors
    /// The store's.
    fn next_place(&mut self, number: u64) -> Result<Option<Place<Self::Client>>, Self::Error>;

    /// How many places have a lower number, counted up to `most`.
    ///
    /// # Errors
    /// The store's.
    fn places_before(&mut self, number: u64, most: u32) -> Result<u32, Self::Error>;

    /// The highest number of a place, or a higher one that a place had before.
    ///
    /// # Errors
    /// The store's.
    fn last_number(&mut self) -> Result<u64, Self::Error>;

    /// The places that ask for more permits than this.
    ///
    /// # Errors
    /// The store's.
    fn queued_above(&mut self, permits: u32) -> Result<Vec<Place<Self::Client>>, Self::Error>;

    /// Whether late claims of this owner are refused.
    ///
    /// # Errors
    /// The store's.
    fn is_given_up(&mut self, owner: Owner) -> Result<bool, Self::Error>;

    /// The limit that was set.
    ///
    /// # Errors
    /// The store's.
    fn limit(&mut self) -> Result<Option<Record>, Self::Error>;

    /// The number above which the next token is drawn.
    ///
    /// # Errors
    /// The store's.
    fn last_token(&mut self) -> Result<u64, Self::Error>;

    /// The operator who revoked the lease with this highest token.
    ///
    /// # Errors
    /// The store's.
    fn revoked_by(&mut self, highest: FencingToken) -> Result<Option<Note>, Self::Error>;

    /// Makes all changes, or none.
    ///
    /// # Errors
    /// The store's. If it is unknown whether the changes were made, as after a commit without an answer, the error has to say so.
    fn write(&mut self, changes: Changes<Self::Client>) -> Result<(), Self::Error>;
}

/// How a lock is held. Leases that hold it together have the same kind of mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The mode; of permits, only the limit counts.
    pub mode: Mode,
    /// How many permits are taken. More than the limit, if that was lowered.
    pub permits: u32,
}

/// Just enough of these ends, each with its number of permits, to free this many permits: what [`Rows::first_ends`] returns. `ends`
/// are in ascending order.
pub fn ends_of(permits: u32, ends: impl Iterator<Item = (Moment, u32)>) -> Vec<(Moment, u32)> {
    let mut missing = permits;
    let is_needed = |(_, permits): &(Moment, u32)| {
        let is_needed = missing > 0;
        missing = missing.saturating_sub(*permits);
        is_needed
    };
    ends.take_while(is_needed).collect()
}

/// A lease as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The holder's owner.
    pub owner: Owner,
    /// Who else may hold at the same time; permits are under the limit in force.
    pub mode: Mode,
    /// The tokens that were granted.
    pub tokens: TokenRange,
    /// The slots of its permits.
    pub slots: Slots,
    /// When it was granted in this mode; `None` if the store does not know.
    pub granted: Option<Moment>,
    /// When it ends.
    pub until: Moment,
    /// What the holder says about itself.
    pub note: Note,
}

impl Hold {
    /// What a claim is granted at this moment, for its whole ttl.
    pub fn new(now: Moment, claim: &Claim, tokens: TokenRange, slots: Slots) -> Self {
        let (owner, Terms { mode, ttl }, note) = (claim.owner, claim.terms, claim.note.clone());
        Self { owner, mode, tokens, slots, granted: Some(now), until: now + ttl.get(), note }
    }

    /// The holder, for display.
    pub fn holder(&self) -> Holder {
        Holder::Leasehold { tokens: self.tokens, note: self.note.clone() }
    }

    /// The lease, for display.
    pub fn shown(&self, now: Moment) -> Held {
        let age = self.granted.map(|granted| now.since(granted));
        let remaining = Some(self.until.since(now));
        Held { holder: self.holder(), mode: self.mode, slots: self.slots.clone(), age, remaining }
    }
}

/// A waiter's place, with all that a hand-over needs, because the waiter is not asked at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<C> {
    /// Orders the places of a lock, by arrival.
    pub number: u64,
    /// The waiter's owner.
    pub owner: Owner,
    /// What it asks for; permits are under the limit in force.
    pub terms: Terms,
    /// How many tokens it asks for.
    pub width: Width,
    /// When the waiter joined the queue; `None` if the store does not know. For display only.
    pub joined: Option<Moment>,
    /// When it ends unless it is refreshed.
    pub until: Moment,
    /// What the waiter says about itself.
    pub note: Note,
    /// The address at which the waiter is notified.
    pub client: C,
}

impl<C> Place<C> {
    /// The waiter, for display.
    pub fn shown(&self, now: Moment) -> Waiter {
        let age = self.joined.map(|joined| now.since(joined));
        Waiter { note: Some(self.note.clone()), mode: self.terms.mode, age }
    }
}

/// The changes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<C> {
    /// The rows, in this order.
    pub writes: Vec<Write<C>>,
    /// How the lock is held afterwards, for a store that keeps this with the lock. It counts the leases that are valid at [`Rows::now`].
    pub standing: Option<Standing>,
    /// The waiters to notify once the rows are written.
    pub notices: Vec<Notice<C>>,
}

/// A changed row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<C> {
    /// The owner has this lease, and no other one.
    Hold(Hold),
    /// The lease of this owner lasts until then.
    Extend(Owner, Moment),
    /// The lease of this owner has ended.
    End(Owner),
    /// The owner has this place, and no other one.
    Place(Place<C>),
    /// The owner has no place.
    Leave(Owner),
    /// Late claims of this owner are refused until then, or for longer if they are already.
    Tombstone(Owner, Moment),
    /// This limit is in force, and kept until then. All leases and places of permits are under it.
    Limit(Record, Moment),
    /// The lease with this highest token was revoked by that operator, which is remembered until then.
    Revocation(FencingToken, Note, Moment),
    /// No token up to this one is drawn again.
    LastToken(u64),
}

/// An event for one client. A hint: the client may miss it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice<C> {
    /// The waiter's address.
    pub client: C,
    /// The event.
    pub event: StoreEvent,
}
