//! Rows as the server's functions take and return them: JSON. Moments are microseconds since 1970.

use std::time::Duration;

use lock_core::limit::Record;
use lock_core::{FencingToken, Invalid, Limit, Mode, Moment, Note, Owner, Slots, Terms, TokenRange, Ttl, Width};
use lock_rules::window::{Needs, OfOwner, Window};
use lock_rules::{Hold, Place};
use serde::{Deserialize, Serialize};

/// Where a waiter is notified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bell {
    /// The channel that its client listens to; empty if notifications do not arrive.
    pub(crate) channel: String,
    /// Which waiter of that client.
    pub(crate) tag: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Exclusive,
    Shared,
    Permits,
}

/// A mode; of anything but permits, the numbers are 0.
#[derive(Serialize, Deserialize)]
pub(crate) struct ModeRow {
    kind: Kind,
    count: u32,
    lim: u32,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct HoldRow {
    owner: String,
    #[serde(flatten)]
    mode: ModeRow,
    low: u64,
    high: u64,
    slots: Vec<u32>,
    granted: Option<u64>,
    until: u64,
    note: String,
    kept: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct PlaceRow {
    number: u64,
    owner: String,
    #[serde(flatten)]
    mode: ModeRow,
    width: u64,
    ttl: u64,
    /// Absent in tables that an earlier version made.
    #[serde(default)]
    joined: Option<u64>,
    until: u64,
    note: String,
    #[serde(flatten)]
    client: Bell,
}

/// What `load` takes.
#[derive(Serialize)]
pub(crate) struct Load<'a> {
    name: &'a str,
    owners: Vec<String>,
    token: Option<u64>,
    slots: u32,
    ends: u32,
    places: u32,
    numbers: u32,
    above: Option<u32>,
    expired: usize,
}

/// What `load` returns.
#[derive(Deserialize)]
pub(crate) struct Loaded {
    now: u64,
    version: u64,
    tail: u64,
    last_token: u64,
    permits: u32,
    record: Option<String>,
    expired: Vec<HoldRow>,
    last: Vec<HoldRow>,
    holds: Vec<HoldRow>,
    queued: Vec<PlaceRow>,
    given_up: Vec<String>,
    places: Vec<PlaceRow>,
    numbers: Vec<u64>,
    #[serde(default)]
    ends: Vec<(u64, u32)>,
    #[serde(default)]
    free_slots: Vec<u32>,
    with_token: Option<HoldRow>,
    revoked_by: Option<String>,
    #[serde(default)]
    above: Vec<PlaceRow>,
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn to_micros(moment: Moment) -> u64 {
    moment.as_nanos() / 1_000
}

pub(crate) fn to_moment(micros: u64) -> Moment {
    Moment::from_nanos(micros.saturating_mul(1_000))
}

/// The server writes hyphens between the digits.
pub(crate) fn to_owner(text: &str) -> Result<Owner, Invalid> {
    text.replace('-', "").parse()
}

impl From<Mode> for ModeRow {
    fn from(mode: Mode) -> Self {
        let kind = match mode {
            Mode::Shared => Kind::Shared,
            Mode::Permits { .. } => Kind::Permits,
            // The store is asked for no other mode.
            Mode::Exclusive | _ => Kind::Exclusive,
        };
        Self { kind, count: mode.count(), lim: mode.limit().map_or(0, Limit::get) }
    }
}

impl TryFrom<ModeRow> for Mode {
    type Error = Invalid;

    fn try_from(ModeRow { kind, count, lim }: ModeRow) -> Result<Self, Invalid> {
        match kind {
            Kind::Exclusive => Ok(Self::Exclusive),
            Kind::Shared => Ok(Self::Shared),
            // After the limit was lowered, a lease may have more.
            Kind::Permits => Ok(Self::permits(count, count.max(lim))?.under(Limit::new(lim)?)),
        }
    }
}

impl HoldRow {
    pub(crate) fn new(hold: Hold, kept: bool) -> Self {
        let Hold { owner, mode, tokens, slots, granted, until, note } = hold;
        Self {
            owner: owner.to_wire(),
            mode: mode.into(),
            low: tokens.low().get(),
            high: tokens.high().get(),
            slots: slots.get().to_vec(),
            granted: granted.map(to_micros),
            until: to_micros(until),
            note: note.to_wire().to_owned(),
            kept,
        }
    }
}

impl TryFrom<HoldRow> for Hold {
    type Error = Invalid;

    fn try_from(row: HoldRow) -> Result<Self, Invalid> {
        Ok(Self {
            owner: to_owner(&row.owner)?,
            mode: row.mode.try_into()?,
            tokens: TokenRange::new(FencingToken::new(row.low)?, FencingToken::new(row.high)?)?,
            slots: Slots::new(row.slots),
            granted: row.granted.map(to_moment),
            until: to_moment(row.until),
            note: Note::from_wire(&row.note),
        })
    }
}

impl From<Place<Bell>> for PlaceRow {
    fn from(place: Place<Bell>) -> Self {
        let Place { number, owner, terms, width, joined, until, note, client } = place;
        let joined = joined.map(to_micros);
        let (mode, width, ttl, until) = (terms.mode.into(), width.get(), micros(terms.ttl.get()), to_micros(until));
        let (owner, note) = (owner.to_wire(), note.to_wire().to_owned());
        Self { number, owner, mode, width, ttl, joined, until, note, client }
    }
}

impl TryFrom<PlaceRow> for Place<Bell> {
    type Error = Invalid;

    fn try_from(row: PlaceRow) -> Result<Self, Invalid> {
        let PlaceRow { number, owner, mode, width, ttl, joined, until, note, client } = row;
        let terms = Terms { mode: mode.try_into()?, ttl: Ttl::new(Duration::from_micros(ttl))? };
        let width = Width::for_waiters(usize::try_from(width).unwrap_or(usize::MAX));
        let (owner, until, note) = (to_owner(&owner)?, to_moment(until), Note::from_wire(&note));
        Ok(Self { number, owner, terms, width, joined: joined.map(to_moment), until, note, client })
    }
}

impl<'a> Load<'a> {
    pub(crate) fn new(name: &'a str, needs: &Needs) -> Self {
        let Needs { owners, token, slots, ends, places, numbers, above } = needs;
        let owners = owners.iter().map(|owner| owner.to_wire()).collect();
        let (slots, ends, places, numbers, above) = (*slots, *ends, *places, *numbers, *above);
        let (token, expired) = (token.map(FencingToken::get), lock_rules::window::EXPIRED_MAX);
        Self { name, owners, token, slots, ends, places, numbers, above, expired }
    }
}

impl Loaded {
    pub(crate) fn window(self, needs: Needs) -> Result<Window<Bell>, Invalid> {
        let now = to_moment(self.now);
        let queued: Vec<Place<Bell>> = all(self.queued)?;
        let held: Vec<Hold> = all(self.holds)?;
        let given_up = self.given_up.iter().map(|owner| to_owner(owner)).collect::<Result<Vec<_>, _>>()?;
        let of = |owner: Owner| OfOwner {
            owner,
            hold: held.iter().find(|hold| hold.owner == owner && now < hold.until).cloned(),
            place: queued.iter().find(|place| place.owner == owner && now < place.until).cloned(),
            is_given_up: given_up.contains(&owner),
        };
        let ends = self.ends.into_iter().map(|(until, permits)| (to_moment(until), permits));
        Ok(Window {
            now,
            version: self.version,
            tail: self.tail,
            last_token: self.last_token,
            limit: self.record.map(|record| record.parse::<Record>()).transpose()?,
            permits: self.permits,
            expired: all(self.expired)?,
            last: all(self.last)?,
            first_ends: lock_rules::ends_of(needs.ends, ends),
            free_slots: self.free_slots,
            owners: needs.owners.iter().copied().map(of).collect(),
            with_token: self.with_token.map(Hold::try_from).transpose()?,
            revoked_by: self.revoked_by.map(|by| Note::from_wire(&by)),
            places: all(self.places)?,
            numbers: self.numbers,
            above: all(self.above)?,
            needs,
        })
    }
}

pub(crate) fn all<R, T: TryFrom<R, Error = Invalid>>(rows: Vec<R>) -> Result<Vec<T>, Invalid> {
    rows.into_iter().map(T::try_from).collect()
}
