//! What a program of the version before the rules were shared does with a semaphore of the name "a", by its own statements.

use lock_core::{Claim, FencingToken, Lease, Mode, Owner, Slots, TokenRange};
use lock_host::{Clock, ManualClock};
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::rig::Rig;

const LOCK: &str = "SELECT owner, expires_ns - :now FROM locks WHERE name = :name";
const SET_LOCK: &str = "INSERT OR REPLACE INTO locks(name, owner, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :low, :high, :note, :boot, :until, :now)";
const CLEAR_LOCK: &str = "DELETE FROM locks WHERE name = :name";
const HOLDS: &str = "SELECT owner, low, high, note, expires_ns - :now, slots FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns DESC";
const LAST_HOLD: &str = "SELECT low, high, note, expires_ns FROM holds
    WHERE name = :name AND expires_ns > :now ORDER BY expires_ns DESC LIMIT 1";
const SET_HOLD: &str = "INSERT OR REPLACE INTO holds(name, owner, slots, low, high, note, boot, expires_ns, written_ns)
    VALUES (:name, :owner, :slots, :low, :high, :note, :boot, :until, :now)";
const RENEW_HOLD: &str = "UPDATE holds SET expires_ns = :until, written_ns = :now
    WHERE name = :name AND owner = :owner AND low = :low AND high = :high AND expires_ns > :now";
const END_HOLD: &str = "DELETE FROM holds WHERE name = :name AND owner = :owner
    RETURNING expires_ns > :now";
const CLEAR_HOLDS: &str = "DELETE FROM holds WHERE name = :name";
const FIRST_PLACE: &str = "SELECT owner, width FROM queue
    WHERE name = :name AND expires_ns > :now ORDER BY place LIMIT 1";
const APPEND_PLACE: &str = "INSERT INTO queue(name, place, owner, ttl_ms, width, kind, note, boot, expires_ns)
    SELECT :name, coalesce(max(place), 0) + 1, :owner, :ttl, :width, :kind, :note, :boot, :until
    FROM queue WHERE name = :name";
const DROP_PLACE: &str = "DELETE FROM queue WHERE name = :name AND owner = :owner";
const LAST_TOKEN: &str = "SELECT last FROM counter";
const SET_LAST_TOKEN: &str = "UPDATE counter SET last = :last";
const SWEEP: &str = "DELETE FROM holds WHERE (name, owner) IN (SELECT name, owner FROM (
    SELECT * FROM (SELECT * FROM holds WHERE name > :name ORDER BY name, owner LIMIT :limit)
    UNION ALL SELECT * FROM (SELECT * FROM holds ORDER BY name, owner LIMIT :limit)
    ) WHERE expires_ns <= :now)";

/// The limit of the semaphore is the one that a claim names, or else this.
const LIMIT: u32 = 5;

pub(crate) struct Earlier {
    db: Connection,
    boot: String,
    clock: ManualClock,
}

impl Earlier {
    /// Uses a file that another program has made.
    pub(crate) fn beside(rig: &Rig) -> Self {
        Self { db: rig.raw(), boot: lock_host::boot_id().unwrap().unwrap(), clock: rig.clock.clone() }
    }

    /// Grants the permits if they are free.
    pub(crate) fn claim(&self, claim: &Claim) -> Option<Lease> {
        let Mode::Permits { limit, .. } = claim.terms.mode else { panic!("only permits") };
        self.alone(|| {
            let slots = self.fit(claim.terms.mode.count(), limit.get())?;
            let seconds = i64::try_from(claim.terms.ttl.get().as_secs()).unwrap();
            let tokens = self.grant(&claim.owner.to_wire(), &slots, limit.get(), seconds);
            Some(claim.lease_of(tokens, Slots::new(slots)))
        })
    }

    /// Grants a lease again that its owner has.
    pub(crate) fn claim_again(&self, claim: &Claim, lease: &Lease) {
        let Mode::Permits { limit, .. } = claim.terms.mode else { panic!("only permits") };
        let seconds = i64::try_from(claim.terms.ttl.get().as_secs()).unwrap();
        let (low, high) = (i64::from(lease.tokens.low()), i64::from(lease.tokens.high()));
        self.alone(|| self.set(&claim.owner.to_wire(), lease.slots.get(), (low, high), limit.get(), seconds));
    }

    /// Takes a place for this many permits.
    pub(crate) fn wait(&self, owner: Owner, count: u32) {
        let params = named_params! {
            ":name": "a", ":owner": owner.to_wire(), ":ttl": 30_000, ":width": count, ":kind": LIMIT, ":note": "1@h",
            ":boot": self.boot, ":until": self.now() + 10_000_000_000,
        };
        self.db.execute(APPEND_PLACE, params).unwrap();
    }

    /// Ends the lease of this owner, and serves the waiters that fit.
    pub(crate) fn release(&self, owner: Owner) {
        self.alone(|| {
            let params = named_params! { ":name": "a", ":owner": owner.to_wire(), ":now": self.now() };
            let Some((limit, _)) = self.lock() else { return };
            let ended = self.db.prepare(END_HOLD).unwrap().query_row(params, |row| row.get::<_, bool>(0));
            ended.optional().unwrap();
            let mut is_held = self.restate(limit);
            while let Some((next, count)) = self.first_place() {
                let Some(slots) = self.fit(count, limit) else { break };
                self.db.execute(DROP_PLACE, named_params! { ":name": "a", ":owner": next }).unwrap();
                self.grant(&next, &slots, limit, 10);
                is_held = true;
            }
            if !is_held {
                self.db.execute(CLEAR_LOCK, named_params! { ":name": "a" }).unwrap();
            }
        });
    }

    pub(crate) fn renew(&self, lease: &Lease) -> bool {
        self.alone(|| {
            let Some((limit, true)) = self.lock() else { return false };
            let ttl = i64::try_from(lease.terms.ttl.get().as_nanos()).unwrap();
            let params = named_params! {
                ":name": "a", ":owner": lease.owner.to_wire(), ":low": i64::from(lease.tokens.low()),
                ":high": i64::from(lease.tokens.high()), ":now": self.now(), ":until": self.now() + ttl,
            };
            self.db.execute(RENEW_HOLD, params).unwrap() == 1 && self.restate(limit)
        })
    }

    pub(crate) fn sweep(&self) {
        self.db.execute(SWEEP, named_params! { ":name": "a", ":limit": 256, ":now": self.now() }).unwrap();
    }

    /// The slots that are taken, in ascending order.
    pub(crate) fn slots(&self) -> Vec<u32> {
        let mut statement = self.db.prepare(HOLDS).unwrap();
        let params = named_params! { ":name": "a", ":now": self.now() };
        let texts = statement.query_map(params, |row| row.get::<_, String>(5)).unwrap().map(Result::unwrap);
        let mut slots: Vec<u32> =
            texts.flat_map(|text| text.split(',').map(|slot| slot.parse().unwrap()).collect::<Vec<u32>>()).collect();
        slots.sort_unstable();
        slots
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.now().as_nanos()).unwrap()
    }

    fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        self.db.execute_batch("BEGIN IMMEDIATE").unwrap();
        let done = work();
        self.db.execute_batch("COMMIT").unwrap();
        done
    }

    /// The limit that the row of the lock names, also after its end, and whether it is living.
    fn lock(&self) -> Option<(u32, bool)> {
        let params = named_params! { ":name": "a", ":now": self.now() };
        let row = self.db.query_row(LOCK, params, |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
        row.optional().unwrap().map(|(owner, left)| (u32::from_str_radix(&owner[24..], 16).unwrap(), left > 0))
    }

    fn first_place(&self) -> Option<(String, u32)> {
        let params = named_params! { ":name": "a", ":now": self.now() };
        self.db.query_row(FIRST_PLACE, params, |row| Ok((row.get(0)?, row.get(1)?))).optional().unwrap()
    }

    /// The lowest free slots.
    fn fit(&self, count: u32, limit: u32) -> Option<Vec<u32>> {
        let used = if self.lock().is_some_and(|(_, is_living)| is_living) { self.slots() } else { Vec::new() };
        let count = usize::try_from(count).unwrap();
        if used.len() + count > usize::try_from(limit).unwrap() {
            return None;
        }
        Some((0..limit).filter(|slot| used.binary_search(slot).is_err()).take(count).collect())
    }

    fn grant(&self, owner: &str, slots: &[u32], limit: u32, seconds: i64) -> TokenRange {
        let last: i64 = self.db.query_row(LAST_TOKEN, (), |row| row.get(0)).unwrap();
        let (low, high) = (last + 1, last + i64::try_from(slots.len()).unwrap());
        self.db.execute(SET_LAST_TOKEN, named_params! { ":last": high }).unwrap();
        if !self.lock().is_some_and(|(_, is_living)| is_living) {
            self.db.execute(CLEAR_HOLDS, named_params! { ":name": "a" }).unwrap();
        }
        self.set(owner, slots, (low, high), limit, seconds);
        let token = |number| FencingToken::try_from(number).unwrap();
        TokenRange::new(token(low), token(high)).unwrap()
    }

    fn set(&self, owner: &str, slots: &[u32], (low, high): (i64, i64), limit: u32, seconds: i64) {
        let params = named_params! {
            ":name": "a", ":owner": owner, ":slots": Slots::new(slots.to_vec()).to_string(), ":low": low, ":high": high,
            ":note": "1@h", ":boot": self.boot, ":until": self.now() + seconds * 1_000_000_000, ":now": self.now(),
        };
        self.db.execute(SET_HOLD, params).unwrap();
        self.restate(limit);
    }

    /// Lets the row of the lock say that several hold it. Returns whether anybody does.
    fn restate(&self, limit: u32) -> bool {
        let last = self.db.query_row(LAST_HOLD, named_params! { ":name": "a", ":now": self.now() }, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
        });
        let Some((low, high, note, until)) = last.optional().unwrap() else { return false };
        let params = named_params! {
            ":name": "a", ":owner": format!("{limit:032x}"), ":low": low, ":high": high, ":note": note,
            ":boot": self.boot, ":until": until, ":now": self.now(),
        };
        self.db.execute(SET_LOCK, params).unwrap();
        true
    }
}
