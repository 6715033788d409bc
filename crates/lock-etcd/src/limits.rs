//! Limits of semaphores, which are set while permits are held.

use lock_core::limit::{Act, Record, Request, Usage};
use lock_core::{BackendError, Effect, ErrorKind, Mode, Operation};
use lock_rules::limit_after;

use crate::cluster::Cluster;
use crate::entry::Entry;
use crate::error::{self, BACKEND};
use crate::txn;

/// How often a limit is set while others set it too. Chosen: only a bound.
const TRIES_MAX: u32 = 16;

/// Sets the limit of a semaphore, or looks at it. Its waiters learn of a new limit by their watches, and ask anew.
pub(crate) async fn ask(cluster: &Cluster, request: &Request) -> Result<Usage, BackendError> {
    let failed = |status| error::of(Operation::Limit, status);
    let directory = cluster.directory(&request.name);
    for _ in 0..TRIES_MAX {
        let listed = cluster.list_all(&directory).await.map_err(failed)?;
        let used = listed.entries.iter().filter(|entry| listed.holds(entry)).map(|entry| entry.mode().count()).sum();
        let used_as = listed.first().map(Entry::mode);
        let limit = limit_after(BACKEND, listed.changes.limit.as_ref(), used_as, request)
            .map_err(|refusal| refusal.with_name(&request.name))?;
        if request.act == Act::Look {
            return Ok(Usage { limit, used });
        }
        let in_use = used_as.and_then(Mode::limit);
        let record = Record::of(limit, in_use, request.known, listed.changes.limit.as_ref());
        let lease = cluster.leases.grant(Record::KEPT_FOR).await.map_err(failed)?;
        let write = txn::put(directory.limit(), record.to_string().into_bytes(), lease.id());
        let is_last = txn::is_at(directory.limit(), listed.changes.limit_set);
        let transaction = txn::transaction(vec![is_last], [vec![write], vec![]], &[]);
        if cluster.transact(transaction).await.map_err(failed)?.0.succeeded {
            return Ok(Usage { limit, used });
        }
        cluster.leases.put_back([lease].into_iter());
    }
    let message = "others set the limit at the same time";
    Err(error::new(Operation::Limit, ErrorKind::Unavailable, Effect::None, message))
}
