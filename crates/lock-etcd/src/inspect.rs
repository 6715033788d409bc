//! Locks as operators see them, and the leases that they end.

use std::time::Duration;

use futures_util::future::try_join_all;
use lock_core::inspect::{Cursor, Entry as Shown, Held, Page, Query, Revoked, Waiter, glob_matches};
use lock_core::{FencingToken, Holder, LockName, Note};
use tonic::Status;

use crate::cluster::Cluster;
use crate::entry::Entry;
use crate::listed::Listed;
use crate::txn;

/// How many keys are read for a page.
const KEYS_MAX: i64 = 1000;
/// How often a lease is ended whose holder changes its entry. Chosen: only a bound.
const TRIES_MAX: u32 = 8;
/// How long the store remembers who ended a lease. Chosen: far longer than leases last.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A lock; `None` if nobody holds it.
pub(crate) async fn shown(cluster: &Cluster, name: &LockName) -> Result<Option<Shown>, Status> {
    let listed = cluster.list_all(&cluster.directory(name)).await?;
    let holds = |entry: &&Entry| listed.holds(entry);
    let (holders, waiters): (Vec<&Entry>, Vec<&Entry>) = listed.entries.iter().partition(holds);
    let held = try_join_all(holders.iter().take(Shown::SHOWN_MAX).map(|entry| held(cluster, &listed, entry)));
    let mut held: Vec<Held> = held.await?;
    held.sort_by_key(|held| std::cmp::Reverse(held.remaining));
    let Some(last) = held.first() else { return Ok(None) };
    let (holder, remaining) = (last.holder.clone(), last.remaining);
    let leases = u32::try_from(holders.len()).unwrap_or(u32::MAX);
    let waiter = |entry: &&Entry| Waiter { mode: listed.under_limit(entry.mode()), ..entry.waiter() };
    let queue = waiters.iter().take(Shown::SHOWN_MAX).map(waiter).collect();
    let waiters = listed.count.saturating_sub(leases);
    Ok(Some(Shown { name: name.clone(), holder, remaining, leases, holders: held, waiters, queue, votes: None }))
}

async fn held(cluster: &Cluster, listed: &Listed, entry: &Entry) -> Result<Held, Status> {
    let remaining = cluster.leases.remaining(entry.lease).await?;
    Ok(Held { remaining, mode: listed.under_limit(entry.mode()), ..entry.held(listed.base) })
}

/// Some of the held locks that match, in the order of their keys.
pub(crate) async fn list(cluster: &Cluster, query: &Query) -> Result<Page, Status> {
    let (first, end) = cluster.all_keys();
    let after = query.cursor.as_ref().map_or(first, |cursor| cursor.0.clone().into_bytes());
    let (told, _) = cluster.read(vec![txn::keys((after, end), KEYS_MAX)]).await?;
    let keys: Vec<Entry> = told.ranges.first().into_iter().flat_map(|list| &list.kvs).map(Entry::read).collect();
    let is_cut = told.ranges.first().is_some_and(|list| list.count > KEYS_MAX);
    let (mut entries, mut next) = (Vec::new(), None);
    let directories: Vec<_> = keys.chunk_by(|one, other| lock_of(&one.key) == lock_of(&other.key)).collect();
    for (number, chunk) in directories.iter().enumerate() {
        let is_last = number + 1 == directories.len();
        let is_full = u32::try_from(entries.len()).is_ok_and(|found| found >= query.limit.max(1));
        // The last directory may not be complete; if it is the only one, its first keys have to do.
        if is_full || is_cut && is_last && number > 0 {
            next = chunk.first().map(|entry| Cursor(String::from_utf8_lossy(&entry.key).into_owned()));
            break;
        }
        let Some(first) = chunk.first() else { continue };
        if is_cut && is_last {
            // The first key after those of this directory.
            next = Some(Cursor(format!("{}0", String::from_utf8_lossy(lock_of(&first.key)))));
        }
        let Some(name) = cluster.name_of(&first.key) else { continue };
        if glob_matches(&query.pattern, name.as_str()) {
            entries.extend(shown(cluster, &name).await?);
        }
    }
    Ok(Page { entries, next })
}

/// The beginning of a key that the entries of one lock share.
fn lock_of(key: &[u8]) -> &[u8] {
    let last = key.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
    &key[..last]
}

/// Ends the lease with this token, and remembers who did.
pub(crate) async fn revoke(
    cluster: &Cluster,
    name: &LockName,
    token: FencingToken,
    by: &Note,
) -> Result<Revoked, Status> {
    let directory = cluster.directory(name);
    for _ in 0..TRIES_MAX {
        let listed = cluster.list_all(&directory).await?;
        let tokens = |entry: &Entry| match entry.held(listed.base).holder {
            Holder::Leasehold { tokens, .. } => Some(tokens).filter(|tokens| tokens.contains(token)),
            Holder::Foreign => None,
        };
        let held = listed.entries.iter().filter(|entry| listed.holds(entry));
        let Some((entry, tokens)) = held.filter_map(|entry| Some((entry, tokens(entry)?))).next() else {
            return Ok(Revoked::NotHeld);
        };
        let remembered = cluster.leases.grant(REMEMBERED).await?;
        let note = txn::put(note_of(cluster, tokens.high()), by.to_wire().as_bytes().to_vec(), remembered.id());
        let slots = entry.slots().iter().map(|slot| txn::delete(directory.slot(*slot)));
        let is_there = txn::is_at(entry.key.clone(), entry.version.modified);
        let end = slots.chain([txn::delete(entry.key.clone()), note]).collect();
        let (told, _) = cluster.transact(txn::transaction(vec![is_there], [end, vec![]], &[])).await?;
        if told.succeeded {
            return Ok(Revoked::Revoked);
        }
    }
    Err(Status::aborted("the lock changed with each try to end the lease"))
}

/// Who ended the lease whose highest token this is.
pub(crate) async fn revoked_by(cluster: &Cluster, highest: FencingToken) -> Result<Option<Note>, Status> {
    let (told, _) = cluster.read(vec![txn::get(note_of(cluster, highest))]).await?;
    Ok(told.kv(0).map(|note| Note::from_wire(&String::from_utf8_lossy(&note.value))))
}

fn note_of(cluster: &Cluster, highest: FencingToken) -> Vec<u8> {
    format!("{}leasehold-revoked/{highest}", cluster.root()).into_bytes()
}
