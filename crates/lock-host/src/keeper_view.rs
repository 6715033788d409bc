//! A keeper's view of its client: the renewal queue, and the stations that get the answers.

use lock_core::station::Input;
use lock_core::{BackendError, Batch, Renewal, Renewed};

use crate::renewals::RenewalQueue;
use crate::site::Driver;
use crate::stations::Stations;
use crate::sync::{Arc, Weak};

/// A keeper's view of its client. Does not keep the client alive.
pub struct KeeperView<D: Driver> {
    queue: Arc<RenewalQueue>,
    stations: Weak<Stations<D>>,
}

impl<D: Driver> KeeperView<D> {
    /// A keeper's view of a client.
    pub fn new(stations: &Arc<Stations<D>>) -> Self {
        Self { queue: Arc::clone(&stations.context().renewals), stations: Arc::downgrade(stations) }
    }

    /// The leases to renew.
    pub fn queue(&self) -> &RenewalQueue {
        &self.queue
    }

    /// Passes the answer to a batch on to the stations.
    pub fn answered(&self, batch: Batch, result: Result<Vec<Renewed>, BackendError>) {
        let renewals = self.queue.answered(batch, result);
        let Some(stations) = self.stations.upgrade() else { return };
        for Renewal { name, owner, asked_at, answer } in renewals {
            if let Some(site) = stations.of_owner(&name, owner) {
                site.handle(Input::Renewal { owner, asked_at, answer });
            }
        }
    }

    /// Closes the client when the keeper ends, for whatever reason, because its leases would no longer be renewed.
    pub fn close_on_drop(&self) -> CloseOnDrop<D> {
        CloseOnDrop(Weak::clone(&self.stations))
    }
}

/// Closes a client when it is dropped: its guards are lost, and its leases are released.
pub struct CloseOnDrop<D: Driver>(Weak<Stations<D>>);

impl<D: Driver> Drop for CloseOnDrop<D> {
    fn drop(&mut self) {
        if let Some(stations) = self.0.upgrade() {
            stations.close().iter().for_each(|site| site.attend());
        }
    }
}
