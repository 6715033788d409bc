//! Rows as the server's functions take and return them: JSON. Moments are microseconds since 1970.

use std::time::Duration;

use lock_core::limit::Record;
use lock_core::{
    FencingToken, Invalid, Limit, Mode, Moment, Note, Owner, Slots, StoreEvent, Terms, TokenRange, Ttl, Width,
};
use lock_rules::window::{Commit, Needs, OfOwner, Window};
use lock_rules::{Hold, Notice, Place, Write};
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
    #[serde(default)]
    ends: Vec<(u64, u32)>,
    #[serde(default)]
    free_slots: Vec<u32>,
    with_token: Option<HoldRow>,
    revoked_by: Option<String>,
    #[serde(default)]
    above: Vec<PlaceRow>,
}

/// What `commit` takes.
#[derive(Serialize)]
pub(crate) struct CommitArguments<'a> {
    name: &'a str,
    within: u128,
    version: Option<u64>,
    tail: Option<u64>,
    leases: Vec<LeaseRow>,
    before: Option<u64>,
    writes: Vec<WriteRow>,
    notices: Vec<NoticeRow>,
    permits: Option<u32>,
    durable: bool,
}

/// A lease to compare.
#[derive(Serialize)]
struct LeaseRow {
    owner: String,
    high: u64,
    until: u64,
    /// Whether the commit ends it.
    ends: bool,
}

#[derive(Serialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
enum WriteRow {
    Hold(HoldRow),
    Extend { owner: String, until: u64 },
    End { owner: String },
    Place(PlaceRow),
    Leave { owner: String },
    Tombstone { owner: String, until: u64 },
    Limit { record: String, lim: u32, until: u64 },
    Revocation { token: u64, by: String, until: u64 },
    LastToken { token: u64 },
}

#[derive(Serialize)]
struct NoticeRow {
    #[serde(flatten)]
    client: Bell,
    /// Whose hold it is about; `None` if the waiter should ask.
    owner: Option<String>,
    wanted: bool,
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
    fn new(hold: Hold, kept: bool) -> Self {
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
        let Place { number, owner, terms, width, until, note, client } = place;
        let (mode, width, ttl, until) = (terms.mode.into(), width.get(), micros(terms.ttl.get()), to_micros(until));
        Self { number, owner: owner.to_wire(), mode, width, ttl, until, note: note.to_wire().to_owned(), client }
    }
}

impl TryFrom<PlaceRow> for Place<Bell> {
    type Error = Invalid;

    fn try_from(row: PlaceRow) -> Result<Self, Invalid> {
        let PlaceRow { number, owner, mode, width, ttl, until, note, client } = row;
        let terms = Terms { mode: mode.try_into()?, ttl: Ttl::new(Duration::from_micros(ttl))? };
        let width = Width::for_waiters(usize::try_from(width).unwrap_or(usize::MAX));
        let (owner, until, note) = (to_owner(&owner)?, to_moment(until), Note::from_wire(&note));
        Ok(Self { number, owner, terms, width, until, note, client })
    }
}

impl<'a> Load<'a> {
    pub(crate) fn new(name: &'a str, needs: &Needs) -> Self {
        let Needs { owners, token, slots, ends, places, above } = needs;
        let owners = owners.iter().map(|owner| owner.to_wire()).collect();
        let (slots, ends, places, above) = (*slots, *ends, *places, *above);
        let (token, expired) = (token.map(FencingToken::get), lock_rules::window::EXPIRED_MAX);
        Self { name, owners, token, slots, ends, places, above, expired }
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
            above: all(self.above)?,
            needs,
        })
    }
}

pub(crate) fn all<R, T: TryFrom<R, Error = Invalid>>(rows: Vec<R>) -> Result<Vec<T>, Invalid> {
    rows.into_iter().map(T::try_from).collect()
}

impl<'a> CommitArguments<'a> {
    pub(crate) fn new(name: &'a str, within: Duration, commit: Commit<Bell>) -> Self {
        let Commit { version, tail, leases, before, writes, notices, permits } = commit;
        // Places, refusals and releases that free a lock may be lost: nobody relies on them.
        let is_relied_on = |write: &Write<Bell>| {
            matches!(write, Write::Hold(_) | Write::Extend(..) | Write::Limit(..) | Write::Revocation(..))
        };
        let durable = writes.iter().any(is_relied_on);
        let ends = |owner: Owner| writes.iter().any(|write| matches!(write, Write::End(ended) if *ended == owner));
        let compared = |lease: &lock_rules::window::Compared| LeaseRow {
            owner: lease.owner.to_wire(),
            high: lease.highest.get(),
            until: to_micros(lease.until),
            ends: ends(lease.owner),
        };
        let rows = leases.iter().map(compared).collect();
        // A lease that is kept has the tokens of the one that ends in its favour. A new one has new tokens.
        let is_kept = |hold: &Hold| leases.iter().any(|lease| ends(lease.owner) && lease.highest == hold.tokens.high());
        let before = before.map(to_micros);
        let writes = writes.iter().cloned().map(|write| WriteRow::new(write, is_kept)).collect();
        let notices = notices.into_iter().map(NoticeRow::new).collect();
        Self {
            name,
            within: within.as_millis(),
            version,
            tail,
            leases: rows,
            before,
            writes,
            notices,
            permits,
            durable,
        }
    }
}

impl WriteRow {
    fn new(write: Write<Bell>, is_kept: impl Fn(&Hold) -> bool) -> Self {
        match write {
            Write::Hold(hold) => {
                let kept = is_kept(&hold);
                Self::Hold(HoldRow::new(hold, kept))
            }
            Write::Extend(owner, until) => Self::Extend { owner: owner.to_wire(), until: to_micros(until) },
            Write::End(owner) => Self::End { owner: owner.to_wire() },
            Write::Place(place) => Self::Place(place.into()),
            Write::Leave(owner) => Self::Leave { owner: owner.to_wire() },
            Write::Tombstone(owner, until) => Self::Tombstone { owner: owner.to_wire(), until: to_micros(until) },
            Write::Limit(record, until) => {
                Self::Limit { record: record.to_string(), lim: record.limit().get(), until: to_micros(until) }
            }
            Write::Revocation(token, by, until) => {
                Self::Revocation { token: token.get(), by: by.to_wire().to_owned(), until: to_micros(until) }
            }
            Write::LastToken(token) => Self::LastToken { token },
        }
    }
}

impl NoticeRow {
    fn new(Notice { client, event }: Notice<Bell>) -> Self {
        let StoreEvent::Granted { lease, wanted, .. } = event else {
            return Self { client, owner: None, wanted: false };
        };
        Self { client, owner: Some(lease.owner.to_wire()), wanted }
    }
}
