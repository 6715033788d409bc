//! What transactions of users compare, so that they take effect only while a lock is held.

use futures_util::FutureExt;
use lock_core::{BackendError, FencingToken, Holder, LockName};
use lock_host::Bridge;

use crate::{EtcdConfig, once};

/// The key that is there for as long as a lock is held. A key that is written again after that has another create revision.
///
/// A transaction of your own that compares both takes effect only while the lock is held, and so does what it reads. A lease that replaces this
/// one has the same key: if others may adopt your lease, stop your writes before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldKey {
    /// The key.
    pub key: String,
    /// The revision that created it.
    pub create_revision: i64,
}

/// Finds the key of the lock that is held with this token. Returns `None` if it is not held any more.
pub(crate) async fn held_key(
    config: &EtcdConfig,
    bridge: Bridge,
    name: &LockName,
    token: FencingToken,
) -> Result<Option<HeldKey>, BackendError> {
    let listed = once::ask(config, bridge, |cluster| {
        let directory = cluster.directory(name);
        async move { cluster.list_all(&directory).await }.boxed()
    });
    let listed = listed.await?;
    let has_token = |holder: &Holder| matches!(holder, Holder::Leasehold { tokens, .. } if tokens.contains(token));
    let mut held = listed.entries.iter().filter(|entry| listed.holds(entry));
    let found = held.find(|entry| has_token(&entry.held(listed.base).holder));
    Ok(found.map(|entry| HeldKey {
        key: String::from_utf8_lossy(&entry.key).into_owned(),
        create_revision: entry.version.created,
    }))
}
