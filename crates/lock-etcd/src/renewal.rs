//! Renewals of several leases: the leases of etcd are renewed, and then one transaction finds out which entries are there. A renewal of a lease
//! of etcd alone proves nothing: the entry may have been deleted, and the server that answered may have been deposed.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use lock_core::{BackendError, Lease, LockName, Mode, Moment, Operation, Renewed};
use lock_host::{Clock, HostClock};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::entry::Entry;
use crate::error;
use crate::inspect;
use crate::place::Place;
use crate::tokens::Base;
use crate::txn;

/// A place that this request uses alone.
pub(crate) type Locked = OwnedMutexGuard<Place>;

/// How long the check for waiters may take. Chosen: a small part of the time for a renewal.
const HINT_WITHIN: Duration = Duration::from_millis(100);
/// How often leases are renewed that are not sure to last. Chosen: the first time may find out that another leader was elected.
const RENEWALS_MAX: u32 = 3;
/// How many operations one transaction has at most. Servers take 128, unless configured otherwise.
const OPERATIONS_MAX: usize = 120;

/// Renews the entries of these places, which are those of the leases in their order.
pub(crate) async fn renew(
    cluster: &Cluster,
    leases: &[Lease],
    places: &mut [Locked],
) -> Result<Vec<Renewed>, BackendError> {
    let failed = |status| error::of(Operation::Renew, status);
    let since = HostClock.now();
    let mut lasting = HashMap::new();
    for _ in 0..RENEWALS_MAX {
        let renewals = places.iter_mut().map(|place| place.renew(cluster));
        try_join_all(renewals).await.map_err(failed)?;
        let there: Vec<usize> = (0..places.len()).filter(|at| places[*at].is_there().is_some()).collect();
        for some in together(places, &there) {
            let confirmed = confirm(cluster, (leases, since), places, &some).await.map_err(failed)?;
            lasting.extend(iter::zip(some, confirmed));
        }
        if !places.iter().any(|place| place.is_old()) {
            break;
        }
    }
    let wanted = timeout(HINT_WITHIN, wanted(cluster, leases)).await.unwrap_or_default();
    let mut answers = Vec::new();
    for (at, lease) in leases.iter().enumerate() {
        answers.push(match lasting.remove(&at).flatten() {
            Some(lasts) => {
                Renewed::Renewed { valid_for: lasts.min(lease.terms.ttl.get()), wanted: wanted.contains(&lease.name) }
            }
            // Who did it is good to know, and no reason to fail the others.
            None => match inspect::revoked_by(cluster, lease.tokens.high()).await {
                Ok(Some(by)) => Renewed::Revoked { by },
                Ok(None) | Err(_) => Renewed::NotHeld,
            },
        });
    }
    Ok(answers)
}

/// The names among these that have waiters, except those held exclusively. A hint: it never makes a renewal fail.
async fn wanted(cluster: &Cluster, leases: &[Lease]) -> HashSet<LockName> {
    let names = leases.iter().filter(|lease| lease.terms.mode != Mode::Exclusive).map(|lease| &lease.name);
    let looks = names.collect::<HashSet<_>>().into_iter().map(async |name| {
        let listed = cluster.list_all(&cluster.directory(name)).await.ok()?;
        listed.is_wanted().then(|| name.clone())
    });
    join_all(looks).await.into_iter().flatten().collect()
}

/// These places in groups, each for one transaction.
fn together(places: &[Locked], there: &[usize]) -> Vec<Vec<usize>> {
    let (mut groups, mut operations) = (Vec::<Vec<usize>>::new(), OPERATIONS_MAX);
    for at in there {
        let own = 1 + places[*at].moving().len();
        operations += own;
        match groups.last_mut() {
            Some(group) if operations <= OPERATIONS_MAX => group.push(*at),
            Some(_) | None => {
                groups.push(vec![*at]);
                operations = own;
            }
        }
    }
    groups
}

/// Reads the keys of these places, and moves those to their own leases that need it, if all are there.
async fn confirm(
    cluster: &Cluster,
    (leases, since): (&[Lease], Moment),
    places: &mut [Locked],
    there: &[usize],
) -> Result<Vec<Option<Duration>>, tonic::Status> {
    let asked = || there.iter().map(|at| &places[*at]);
    let compare: Vec<_> = asked().filter_map(|place| place.is_there()).collect();
    let moves: Vec<_> = asked().flat_map(|place| place.moving()).collect();
    let base = txn::get(txn::base_key(cluster.root()));
    let reads: Vec<_> = compare.iter().map(|compare| txn::get(compare.key.clone())).chain([base]).collect();
    let log = [txn::log(cluster.root())];
    let ask = |moves: Vec<_>| {
        let branches = [[&moves[..], &log].concat(), log.to_vec()];
        cluster.transact(txn::transaction(compare.clone(), branches, &reads))
    };
    let (told, seen) = match ask(moves).await {
        // Without room, nothing is moved, and what lasts goes on to do so.
        Err(failure) if error::is_full(&failure) => ask(vec![]).await?,
        told => told?,
    };
    let read: Vec<_> = (0..there.len()).map(|number| told.key(number)).collect();
    // Without entries, their tokens are not missed: the servers may have lost everything.
    let base = if read.iter().any(Option::is_some) { told.base(there.len())? } else { Base::default() };
    let confirm = |(number, at): (usize, &usize)| {
        let (lease, read) = (&leases[*at], read[number].clone());
        // The owner may have had another lease before.
        let is_it = |entry: &Entry| base.tokens(entry.drawn_at(), lease.tokens.width()) == Ok(lease.tokens);
        let is_this_lease = read.as_ref().is_some_and(is_it);
        let place = &mut places[*at];
        (place.confirm(read, seen) && is_this_lease).then(|| place.lasts(since))
    };
    Ok(there.iter().enumerate().map(confirm).collect())
}
