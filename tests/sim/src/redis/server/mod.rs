//! The model of one Redis with our scripts: what it stores, who listens, and how it starts again.

mod database;
mod keys;
mod queue;
mod scripts;

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use lock_core::latch::{LatchState, Seen};
use lock_core::{Capabilities, LockName, Moment, Owner, Slots};

use database::RunId;
pub(crate) use database::{Database, Detail};
use keys::Kept;
use keys::Stored as Value;
use scripts::Script;

use crate::client::Usage;
use crate::dice::Dice;
use crate::network::ConnId;
use crate::one::{Ask, Inbox, Listeners, Mistake, Model, Order, Outcome, Say, Stored, millis};

/// One Redis.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) data: Database,
    run_id: RunId,
    listeners: Listeners,
    mistake: Option<Mistake>,
    detail: Detail,
}

impl Server {
    pub(crate) fn new(mistake: Option<Mistake>, detail: Detail) -> Self {
        Self { data: Database::default(), run_id: 1, listeners: Listeners::default(), mistake, detail }
    }

    /// The same server as this run of it.
    pub(crate) fn in_run(self, run_id: RunId) -> Self {
        Self { run_id, ..self }
    }

    /// Whether the counter was last verified for this run.
    pub(crate) fn is_verified(&self) -> bool {
        self.data.marker == Some(self.run_id)
    }

    /// As if it had just been verified.
    pub(crate) fn verified(&mut self) {
        self.data.marker = Some(self.run_id);
    }

    fn script(&mut self, now: Moment, ask: &Ask) -> Outcome {
        let run_id = self.run_id;
        let (published, granted) = (Vec::new(), Vec::new());
        let (data, listeners, mistake, detail) = (&mut self.data, &self.listeners, self.mistake, self.detail);
        let mut script = Script { data, now, listeners, mistake, detail, published, granted };
        let say = match ask {
            Ask::Join(..) | Ask::Beat | Ask::CatchUp | Ask::EndSession => Say::SessionOver,
            Ask::Hello(_) => {
                script.verify(run_id);
                Say::Hello
            }
            Ask::Acquire(claim, seat) => Say::Acquire(script.acquire(claim, *seat)),
            Ask::Renew(leases) => Say::Renew(script.renew(leases)),
            Ask::Release(request) => Say::Release(Ok(script.release(request))),
            Ask::Fence(lease) => Say::Fence(script.fence(lease)),
            Ask::Revoke(name, token) => Say::Revoke(script.revoke(name, *token)),
            Ask::Topology => Say::NotPrimary,
            Ask::Grant(_) | Ask::KeepAlive(_) | Ask::Look(_) | Ask::Txn(..) => Say::NoLease,
            // The trace has no latches: one is not there.
            Ask::Latch(..) => Say::Latch(Seen { state: None, told: false }),
            Ask::ForeignSet(name, value, life) => Say::Foreign(script.foreign_set(name, *value, *life)),
            Ask::ForeignDelete(name, value) => Say::Foreign(script.foreign_delete(name, *value)),
        };
        Outcome { say, published: script.published, granted: script.granted }
    }

    /// Drops what has expired. Redis does so when a key is read; keys that nobody reads do not matter.
    fn forget_what_is_over(&mut self, now: Moment) {
        for keys in self.data.locks.values_mut() {
            keys.forget_what_is_over(millis(now));
        }
        self.data.locks.retain(|_, keys| !keys.is_empty());
    }
}

impl Model for Server {
    type Data = Database;

    const TTLS: &'static [Duration] = &[
        Duration::from_millis(600),
        Duration::from_secs(3),
        Duration::from_secs(3),
        Duration::from_secs(12),
        Duration::from_secs(30),
    ];
    const REPEATS: &'static [u32] = &[0];
    const ORDER: Order = Order::OfThoseWhoListen;

    fn new(dice: &mut Dice, mistake: Option<Mistake>) -> Self {
        Self::new(mistake, if dice.chance(500) { Detail::Full } else { Detail::AsRedis })
    }

    fn can(capabilities: Capabilities) -> Capabilities {
        capabilities
    }

    fn usage(_: &mut Dice) -> Usage {
        Usage::Mutex
    }

    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        if let Ask::Hello(Some(inbox)) = ask {
            self.listeners.add(*inbox, conn);
        }
        self.script(now, ask)
    }

    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.on(inbox)
    }

    fn closed(&mut self, conn: ConnId) {
        self.listeners.closed(conn);
    }

    fn data(&self) -> &Database {
        &self.data
    }

    fn flush(&mut self, _: Moment) {
        mem::take(&mut self.data);
    }

    fn start_again(&mut self, _: Moment, data: Database) {
        self.data = data;
        self.listeners.clear();
        self.run_id += 1;
    }

    fn latches() -> Vec<LockName> {
        Vec::new()
    }

    fn latch(&mut self, _: Moment, _: &LockName) -> Option<LatchState> {
        None
    }

    fn owners(&self) -> BTreeSet<Owner> {
        self.data.owners().collect()
    }

    fn holds(&self, _: Moment, name: &LockName) -> Vec<Stored> {
        let lock = self.data.locks.get(name).and_then(|keys| keys.lock.as_ref());
        lock.and_then(stored).into_iter().collect()
    }

    /// No key outlives its lease or its place: after a quiet time only the counter and the marker are left.
    fn left_over(&mut self, now: Moment, _: &[LockName]) -> Option<String> {
        self.forget_what_is_over(now);
        (!self.data.locks.is_empty()).then(|| format!("{:?}", self.data))
    }
}

/// A key is there for all of its last millisecond.
fn stored(lock: &Kept<Value>) -> Option<Stored> {
    let until = Moment::ORIGIN + Duration::from_millis(lock.ends + 1);
    Some(Stored { owner: lock.value.owner()?, tokens: lock.value.tokens()?, slots: Slots::NONE, until })
}
