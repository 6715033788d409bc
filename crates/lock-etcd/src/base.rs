//! Raises the base of the tokens, for operators.

use futures_util::FutureExt;
use lock_core::{BackendError, Effect, ErrorKind, FencingToken, Operation};
use lock_host::Bridge;
use tonic::Status;

use crate::cluster::Cluster;
use crate::tokens::Base;
use crate::{EtcdConfig, error, once, txn};

/// Raises the base, so that all later tokens are above this one. Returns false if it is high enough.
pub(crate) async fn raise(config: &EtcdConfig, bridge: Bridge, above: FencingToken) -> Result<bool, BackendError> {
    let raised = once::ask(config, bridge, |cluster| raise_at(cluster, above).boxed()).await?;
    raised.ok_or_else(|| {
        let message = format!("above {above}, too few tokens are left");
        let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message);
        told.with_remedy("name the highest token that was in use")
    })
}

/// Returns `None` if too few tokens would be left.
async fn raise_at(cluster: &Cluster, above: FencingToken) -> Result<Option<bool>, Status> {
    loop {
        let seen = read(cluster).await?;
        if seen.base.is_some_and(|base| base.is_at_least(above)) {
            return Ok(Some(false));
        }
        if !Base::at(above).has_room(seen.revision) {
            return Ok(None);
        }
        if write(cluster, &seen, above).await? {
            return Ok(Some(true));
        }
    }
}

/// The base as it was read.
struct Seen {
    /// `None` if it is missing, or no number.
    base: Option<Base>,
    /// When it was last written; 0 if it is missing.
    modified: i64,
    /// The latest write of the cluster.
    revision: i64,
}

async fn read(cluster: &Cluster) -> Result<Seen, Status> {
    let (told, _) = cluster.read(vec![txn::get(txn::base_key(cluster.root()))]).await?;
    let modified = told.kv(0).map_or(0, |base| base.mod_revision);
    Ok(Seen { base: told.base(0).ok(), modified, revision: told.revision })
}

/// Writes it, unless somebody else has written it since.
async fn write(cluster: &Cluster, seen: &Seen, above: FencingToken) -> Result<bool, Status> {
    let key = txn::base_key(cluster.root());
    let is_unchanged = txn::is_at(key.clone(), seen.modified);
    let put = txn::put(key, Base::at(above).to_wire(), 0);
    let (told, _) = cluster.transact(txn::transaction(vec![is_unchanged], [vec![put], vec![]], &[])).await?;
    Ok(told.succeeded)
}
