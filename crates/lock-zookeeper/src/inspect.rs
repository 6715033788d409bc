//! Locks as operators see them, and the leases that they end.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lock_core::inspect::{Cursor, Entry, Held, Page, Query, Revoked, glob_matches};
use lock_core::{FencingToken, Holder, LockName, Note, Prefix};
use zookeeper_client::Error;

use crate::directory::Directory;
use crate::entry::{self, Listed};
use crate::path::{BASE, LATCHES, OF_ENTRIES, REVOKED, name_at};
use crate::session::Session;

/// How long a note of a revocation is kept at least. Chosen: far above the longest session of most servers, so a holder reads the note before it
/// could be deleted.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// How many notes one revocation looks at. Chosen: more than are written for each that is deleted.
const FORGOTTEN_MAX: usize = 16;

/// A lock; `None` if nobody holds it.
pub(crate) async fn shown(session: &Session, directory: &Directory, name: LockName) -> Result<Option<Entry>, Error> {
    let listed = directory.listed(session).await?;
    entry_of(session, directory, name, &listed).await
}

async fn entry_of(
    session: &Session,
    directory: &Directory,
    name: LockName,
    listed: &[Listed],
) -> Result<Option<Entry>, Error> {
    let (holders, waiters) = entry::holders_and_waiters(listed);
    let shown = holders.iter().take(Entry::SHOWN_MAX);
    let held: Vec<Held> =
        try_join_all(shown.map(|entry| directory.held(session, entry))).await?.into_iter().flatten().collect();
    let Some(holder) = held.first().map(|held| held.holder.clone()) else { return Ok(None) };
    let queued = waiters.iter().take(Entry::SHOWN_MAX).map(|entry| directory.waiter(session, entry));
    let queue = try_join_all(queued).await?.into_iter().flatten().collect();
    let count = |entries: &[Listed]| u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let (leases, waiters) = (count(holders), count(waiters));
    Ok(Some(Entry { name, holder, remaining: None, leases, holders: held, waiters, queue, votes: None }))
}

/// The held locks behind the cursor that match, as far as they were read until then. Directories are read in the order of their paths, and those
/// within a directory behind it.
pub(crate) async fn list(session: &Session, prefix: &Prefix, query: &Query, until: Instant) -> Result<Page, Error> {
    let after = query.cursor.as_ref().map(|cursor| segments(&cursor.0));
    let (mut entries, mut paths) = (Vec::new(), vec![String::new()]);
    let most = query.limit.max(1);
    while let Some(path) = paths.pop() {
        let here = segments(&path);
        if after.as_ref().is_some_and(|after| here < *after && !after.starts_with(&here)) {
            continue;
        }
        let is_behind = after.as_ref().is_none_or(|after| here > *after);
        let children = match session.children(if path.is_empty() { "/" } else { &path }).await {
            Err(Error::NoAuth) if !path.is_empty() => {
                entries.extend(closed(prefix, &path, &query.pattern).filter(|_| is_behind));
                continue;
            }
            listed => listed?.unwrap_or_default(),
        };
        let mut below: Vec<_> = children.iter().filter(|child| is_directory(&path, child)).collect();
        below.sort_unstable_by(|one, other| other.cmp(one));
        paths.extend(below.into_iter().map(|child| format!("{path}/{child}")));
        if !is_behind {
            continue;
        }
        let name = name_at(prefix, &path).filter(|name| glob_matches(&query.pattern, name.as_str()));
        if let Some(name) = name {
            let directory = Directory::at(path.clone());
            entries.extend(entry_of(session, &directory, name, &entry::in_order(&children)).await?);
        }
        if !paths.is_empty()
            && (u32::try_from(entries.len()).is_ok_and(|found| found >= most) || Instant::now() >= until)
        {
            return Ok(Page { entries, next: Some(Cursor(path)) });
        }
    }
    Ok(Page { entries, next: None })
}

fn segments(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
}

/// A directory that is closed to this client: whether somebody holds the lock is not known, so somebody does.
fn closed(prefix: &Prefix, path: &str, pattern: &str) -> Option<Entry> {
    let name = name_at(prefix, path).filter(|name| glob_matches(pattern, name.as_str()))?;
    Some(Entry::exclusive(name, Holder::Foreign, None, 0))
}

/// Whether a child may be the directory of a lock, or have some in it.
fn is_directory(path: &str, child: &str) -> bool {
    let is_ours = path.is_empty() && ["zookeeper", BASE, REVOKED, LATCHES].contains(&child);
    !is_ours && !child.starts_with(OF_ENTRIES)
}

/// Ends the lease with this token, and remembers who did.
pub(crate) async fn revoke(
    session: &Session,
    directory: &Directory,
    token: FencingToken,
    by: &Note,
) -> Result<Revoked, Error> {
    let listed = directory.listed(session).await?;
    let (holders, _) = entry::holders_and_waiters(&listed);
    for entry in holders {
        let Some(Held { holder: Holder::Leasehold { tokens, .. }, slots, .. }) = directory.held(session, entry).await?
        else {
            continue;
        };
        // Permits without slots are not held yet.
        let is_held = entry.role.permits().is_none() || !slots.get().is_empty();
        if !is_held || !tokens.contains(token) {
            continue;
        }
        let mut ended: Vec<_> = slots.get().iter().map(|slot| directory.slot(*slot)).collect();
        ended.push(directory.path(&entry.child));
        return match session.end_and_note(&ended, &note_of(tokens.high()), by.to_wire().as_bytes()).await {
            Ok(()) => {
                // The lease has ended, whatever becomes of this.
                _ = forget_old(session, tokens.high()).await;
                Ok(Revoked::Revoked)
            }
            Err(Error::NoNode | Error::NodeExists) => Ok(Revoked::NotHeld),
            Err(failure) => Err(failure),
        };
    }
    Ok(Revoked::NotHeld)
}

/// Who ended the lease whose highest token this is.
pub(crate) async fn revoked_by(session: &Session, highest: FencingToken) -> Result<Option<Note>, Error> {
    let found = session.data(&note_of(highest)).await?;
    Ok(found.map(|(by, _)| Note::from_wire(&String::from_utf8_lossy(&by))))
}

fn note_of(highest: FencingToken) -> String {
    format!("/{REVOKED}/{highest}")
}

/// Forgets who ended leases long before this one, by the servers' clock.
async fn forget_old(session: &Session, highest: FencingToken) -> Result<(), Error> {
    let Some(latest) = session.read(|client| client.check_stat(&note_of(highest))).await? else { return Ok(()) };
    let long = i64::try_from(REMEMBERED.as_millis()).unwrap_or(i64::MAX);
    for child in session.children(&format!("/{REVOKED}")).await?.unwrap_or_default().iter().take(FORGOTTEN_MAX) {
        let path = format!("/{REVOKED}/{child}");
        let stat = session.read(|client| client.check_stat(&path)).await?;
        if stat.is_some_and(|stat| stat.ctime.saturating_add(long) < latest.ctime) {
            session.delete(&[path]).await?;
        }
    }
    Ok(())
}
