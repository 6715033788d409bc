//! A client's view of a cluster: its servers, its leases, and where its locks are.

use std::collections::HashSet;
use std::sync::Arc;

use lock_core::{LockName, Prefix};
use tokio::runtime::Handle;
use tonic::Status;

use crate::directory::Directory;
use crate::entry::Listed;
use crate::leases::Leases;
use crate::proto::TxnRequest;
use crate::servers::{Seen, Servers};
use crate::tokens::Base;
use crate::txn::{self, Told};
use crate::watches::Watches;

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
    pub(crate) fn directory_of(&self, key: &[u8]) -> Option<(Directory, LockName)> {
        Directory::of_key(&self.root, &self.prefix, key)
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

    /// Carries out a transaction whose branches end with a look at this directory.
    pub(crate) async fn look(
        &self,
        directory: &Directory,
        compare: Vec<crate::proto::Compare>,
        branches: [Vec<crate::proto::RequestOp>; 2],
    ) -> Result<(Told, Seen), Status> {
        let look = txn::look(&self.root, directory);
        let (answer, seen) = self.servers.transact(txn::transaction(compare, branches, &look)).await?;
        Ok((Told::read_look(answer)?, seen))
    }

    /// All entries of a lock.
    pub(crate) async fn list_all(&self, directory: &Directory) -> Result<Listed, Status> {
        let reads = [txn::list(directory, 0), txn::get(txn::base_key(&self.root))];
        let (told, _) = self.transact(txn::transaction(vec![], [vec![], vec![]], &reads)).await?;
        let base = told.base(1)?;
        Ok(Listed { base, ..told.list(0).ok_or_else(|| Status::internal("no list was answered"))? })
    }

    /// The slots that holders of permits have.
    pub(crate) async fn taken_slots(&self, directory: &Directory) -> Result<HashSet<u32>, Status> {
        let read = [txn::keys(directory.slots(), 0)];
        let (told, _) = self.transact(txn::transaction(vec![], [vec![], vec![]], &read)).await?;
        let keys = told.ranges.first().into_iter().flat_map(|range| &range.kvs);
        Ok(keys.filter_map(|slot| std::str::from_utf8(&slot.key).ok()?.rsplit_once('/')?.1.parse().ok()).collect())
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
