//! The stations of a client, by name and kind.

use std::collections::HashMap;
use std::fmt;

use lock_core::station::{Floor, Input, Station};
use lock_core::{
    Certainty, Delivery, EventSink, Evidence, Lease, Listener, LockName, NameKind, Owner, ReleaseRequest, StoreEvent,
};

use crate::client_context::ClientContext;
use crate::outage::Outage;
use crate::sharded::Sharded;
use crate::site::{Driver, Site};
use crate::sync::Arc;
use crate::wake_registry::WakeRegistry;

/// The stations of a client. They are created on demand; idle ones that no lock refers to are dropped when there are many.
pub struct Stations<D: Driver> {
    context: Arc<ClientContext<D>>,
    floor: Floor,
    sites: Sharded<Sites<D>>,
    /// The waiters for latches, which no station knows.
    pub(crate) wake_registry: Arc<WakeRegistry>,
    pub(crate) outage: Outage,
    pub(crate) lasting: Outage,
}

/// Some of them.
struct Sites<D: Driver> {
    /// A name has one for each kind that it is used as.
    by_name: HashMap<(LockName, NameKind), Arc<Site<D>>>,
    tidy_at: usize,
    phase: Phase,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

/// How many stations each shard keeps before it drops idle ones. If each lock has its own counter, the highest token is
/// forgotten with the station.
const STATIONS_KEPT: usize = 32;

impl<D: Driver> Stations<D> {
    /// No stations yet.
    pub fn new(context: ClientContext<D>) -> Arc<Self> {
        let (floor, sites, wake_registry, outage, lasting) = Default::default();
        Arc::new(Self { context: Arc::new(context), floor, sites, wake_registry, outage, lasting })
    }

    /// What they share.
    pub fn context(&self) -> &ClientContext<D> {
        &self.context
    }

    /// Where the backend delivers events.
    pub fn sink(self: &Arc<Self>) -> EventSink {
        EventSink::of(Arc::downgrade(self))
    }

    /// The station of a name that is used as this kind, made if there is none.
    pub fn site(&self, name: &LockName, kind: NameKind) -> Arc<Site<D>> {
        let (mut sites, key) = (self.sites.of(name), (name.clone(), kind));
        if let Some(site) = sites.by_name.get(&key) {
            return Arc::clone(site);
        }
        sites.tidy();
        let (policy, owners) = (Arc::clone(&self.context.policy), Arc::clone(&self.context.owners));
        let station = Station::new(name.clone(), kind, policy, owners).sharing(&self.floor);
        let site = Site::new(Arc::clone(&self.context), station);
        if sites.phase == Phase::Closed {
            site.close();
        }
        sites.by_name.insert(key, Arc::clone(&site));
        site
    }

    /// The station of a name that is used as this kind, if there is one.
    pub fn find(&self, name: &LockName, kind: NameKind) -> Option<Arc<Site<D>>> {
        self.sites.of(name).by_name.get(&(name.clone(), kind)).cloned()
    }

    /// The station that knows this owner.
    pub(crate) fn of_owner(&self, name: &LockName, owner: Owner) -> Option<Arc<Site<D>>> {
        self.find_all(name).into_iter().find(|site| site.knows(owner))
    }

    /// All stations of a name.
    pub(crate) fn find_all(&self, name: &LockName) -> Vec<Arc<Site<D>>> {
        [NameKind::Lock, NameKind::ReadWriteLock, NameKind::Semaphore]
            .into_iter()
            .filter_map(|kind| self.find(name, kind))
            .collect()
    }

    /// Closes all stations, including later ones, and returns them.
    pub fn close(&self) -> Vec<Arc<Site<D>>> {
        self.sites.all().for_each(|mut sites| sites.phase = Phase::Closed);
        self.wake_registry.close();
        let sites = self.all();
        sites.iter().for_each(|site| site.close());
        sites
    }

    fn all(&self) -> Vec<Arc<Site<D>>> {
        self.sites.all().flat_map(|sites| sites.by_name.values().cloned().collect::<Vec<_>>()).collect()
    }
}

impl<D: Driver> Listener for Stations<D> {
    /// Passes an event on. A grant is for the station that knows its owner, if there is one.
    fn deliver(&self, event: StoreEvent) -> Delivery {
        let sites = match &event {
            StoreEvent::Granted { lease, .. } => match self.of_owner(&lease.name, lease.owner) {
                Some(site) => vec![site],
                None => return Delivery::Unknown,
            },
            StoreEvent::Freed { name } | StoreEvent::Wanted { name } | StoreEvent::Revoked { name } => {
                self.find_all(name)
            }
            StoreEvent::LatchChanged { name } => {
                self.wake_registry.wake(name);
                return Delivery::Taken;
            }
            StoreEvent::RecheckHolds => self.all(),
            StoreEvent::RecheckAll | _ => {
                self.wake_registry.wake_all();
                self.all()
            }
        };
        sites.iter().for_each(|site| site.handle(Input::Event(event.clone())));
        Delivery::Taken
    }

    fn release_unknown(&self, lease: Lease) {
        let Lease { name, owner, terms, .. } = lease;
        let request = ReleaseRequest {
            name,
            owner,
            terms,
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        };
        self.context.driver.release(request, self.context.policy.within(terms.ttl));
    }
}

impl<D: Driver> Default for Sites<D> {
    fn default() -> Self {
        Self { by_name: HashMap::new(), tidy_at: STATIONS_KEPT, phase: Phase::Open }
    }
}

impl<D: Driver> Sites<D> {
    fn tidy(&mut self) {
        if self.by_name.len() >= self.tidy_at {
            self.by_name.retain(|_, site| Arc::strong_count(site) > 1 || !site.is_idle());
            self.tidy_at = STATIONS_KEPT.max(self.by_name.len() * 2);
        }
    }
}

impl<D: Driver> fmt::Debug for Stations<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stations").field("context", &self.context).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "stations/tests.rs"]
mod tests;
