//! Holders, for display: what they are called, and whether their processes are still there.

use leasehold::Holder;
use leasehold::inspect::Entry;
pub(crate) use leasehold::inspect::is_gone;

/// A holder for display.
pub(crate) fn name_of(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) if is_gone(holder) == Some(true) => format!("{holder}, whose process is gone"),
        Some(holder) => holder.to_string(),
        None => "somebody".to_owned(),
    }
}

/// The holder whose lease ends last, and how many there are beside it.
pub(crate) fn names_of(entry: &Entry) -> String {
    let first = name_of(Some(&entry.holder));
    match entry.leases.saturating_sub(1) {
        0 => first,
        1 => format!("{first} and 1 other"),
        others => format!("{first} and {others} others"),
    }
}

/// Whether this process has the only lease: the store has granted what it waits for, but replicas have not confirmed that, or the
/// answer was lost.
pub(crate) fn is_own(entry: &Entry) -> bool {
    let Holder::Leasehold { note, .. } = &entry.holder else { return false };
    let is_here =
        || leasehold::inspect::note("").is_ok_and(|here| (here.host(), here.pid()) == (note.host(), note.pid()));
    entry.leases == 1 && is_here()
}
