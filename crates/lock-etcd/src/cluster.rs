//! A client's view of a cluster: its servers, its leases, and where its locks are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{LockName, Prefix};
use tokio::runtime::Handle;
use tonic::Status;

use crate::directory::Directory;
use crate::leases::Leases;
use crate::listed::{LISTED_MAX, Listed};
use crate::proto::{Compare, RequestOp, TxnRequest};
use crate::servers::{Seen, Servers};
use crate::tokens::Base;
use crate::txn::{self, Told};
use crate::watches::Watches;

/// How long it is noted that a lease was replaced. Chosen: far longer than a place, so each waiter of that moment has read it or lost its place.
const NOTED_FOR: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    pub(crate) servers: Arc<Servers>,
    pub(crate) leases: Leases,
    pub(crate) watches: Watches,
    root: String,
    prefix: Prefix,
}

impl Cluster {
    pub(crate) fn new(servers: Servers, root: String, prefix: Prefix, runtime: &Handle) -> Self {
        let servers = Arc::new(servers);
        Self {
            leases: Leases::new(Arc::clone(&servers), runtime.clone()),
            watches: Watches::new(Arc::clone(&servers), runtime.clone()),
            servers,
            root,
            prefix,
        }
    }

    /// What all keys of this client begin with.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn directory(&self, name: &LockName) -> Directory {
        Directory::of(&self.root, &self.prefix, name)
    }

    /// The lock that a key belongs to. `None` if it belongs to none of this client's.
    pub(crate) fn name_of(&self, key: &[u8]) -> Option<LockName> {
        Directory::name_of(&self.root, &self.prefix, key)
    }

    /// The first key that this client may have, and one behind the last.
    pub(crate) fn all_keys(&self) -> (Vec<u8>, Vec<u8>) {
        let start = self.prefix.key("");
        let start = format!("{}{start}", self.root).into_bytes();
        // All names are UTF-8, where this byte does not occur.
        let end = [&start[..], &[0xff]].concat();
        (start, end)
    }

    /// Carries out a transaction.
    pub(crate) async fn transact(&self, transaction: TxnRequest) -> Result<(Told, Seen), Status> {
        let (answer, seen) = self.servers.transact(transaction).await?;
        Ok((Told::read(answer), seen))
    }

    /// Reads, all as it was at one moment.
    pub(crate) async fn read(&self, reads: Vec<RequestOp>) -> Result<(Told, Seen), Status> {
        self.transact(txn::transaction(vec![], [reads, vec![]], &[])).await
    }

    /// Carries out a transaction whose branches end with a look at this directory.
    pub(crate) async fn look(
        &self,
        directory: &Directory,
        compare: Vec<Compare>,
        branches: [Vec<RequestOp>; 2],
    ) -> Result<(Told, Seen), Status> {
        self.look_at(directory, LISTED_MAX, (compare, branches)).await
    }

    async fn look_at(
        &self,
        directory: &Directory,
        limit: i64,
        (compare, branches): (Vec<Compare>, [Vec<RequestOp>; 2]),
    ) -> Result<(Told, Seen), Status> {
        let look = txn::look(&self.root, directory, limit);
        let (answer, seen) = self.servers.transact(txn::transaction(compare, branches, &look)).await?;
        Ok((Told::read_look(answer, directory)?, seen))
    }

    /// All entries of a lock.
    pub(crate) async fn list_all(&self, directory: &Directory) -> Result<Listed, Status> {
        let (told, _) = self.look_at(directory, 0, (vec![], [vec![], vec![]])).await?;
        told.listed.ok_or_else(|| Status::internal("no list was answered"))
    }

    /// The slots that holders of permits have, and the revisions of the latest changes of their keys.
    pub(crate) async fn taken_slots(&self, directory: &Directory) -> Result<HashMap<u32, i64>, Status> {
        let (told, _) = self.read(vec![txn::keys(directory.slots(), 0)]).await?;
        let keys = told.ranges.first().into_iter().flat_map(|range| &range.kvs);
        let slot = |key: &[u8]| std::str::from_utf8(key).ok()?.rsplit_once('/')?.1.parse().ok();
        Ok(keys.filter_map(|kv| Some((slot(&kv.key)?, kv.mod_revision))).collect())
    }

    /// A lease for notes about an end, which others read for a while.
    pub(crate) async fn lease_of_notes(&self) -> Result<i64, Status> {
        self.leases.grant(NOTED_FOR).await.map(|lease| lease.id())
    }

    /// Writes the base of the tokens, unless there is one.
    pub(crate) async fn check_base(&self) -> Result<(), Status> {
        let key = txn::base_key(&self.root);
        let write = txn::put(key.clone(), Base::of_clock().to_wire(), 0);
        let transaction = txn::transaction(vec![txn::is_absent(key.clone())], [vec![write], vec![]], &[txn::get(key)]);
        let (told, _) = self.transact(transaction).await?;
        told.base(0).map(drop)
    }
}
