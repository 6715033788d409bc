//! Holders, for display: what they are called, and whether their processes are still there.

pub(crate) use leasehold::inspect::is_gone;
use leasehold::inspect::{Entry, Held, Note};
use leasehold::{FencingToken, Holder};

/// A holder for display.
pub(crate) fn name_of(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) if is_gone(holder) == Some(true) => format!("{holder}, whose process is gone"),
        Some(holder) => holder.to_string(),
        None => "somebody".to_owned(),
    }
}

/// Said after the time that a lease has left. Nobody renews it for a process that is gone.
pub(crate) fn unless_renewed(holder: &Holder) -> &'static str {
    if is_gone(holder) == Some(true) { "" } else { " unless renewed" }
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
    entry.leases == 1 && is_of_this_process(note)
}

/// The place of this process in the queue, as the end of a sentence; empty if the store does not show it there.
pub(crate) fn own_place(entry: &Entry) -> String {
    match entry.queue.iter().position(|waiter| waiter.note.as_ref().is_some_and(is_of_this_process)) {
        Some(0) => ", next in line".to_owned(),
        Some(before) => format!(", place {} in line", before + 1),
        None if entry.lists_all_waiters() => String::new(),
        None => format!(", behind at least {} in line", entry.queue.len()),
    }
}

/// Whether the lease has this token.
pub(crate) fn spans(held: &Held, token: FencingToken) -> bool {
    held.holder.tokens().is_some_and(|tokens| tokens.contains(token))
}

fn is_of_this_process(note: &Note) -> bool {
    leasehold::inspect::note("").is_ok_and(|here| (here.host(), here.pid()) == (note.host(), note.pid()))
}

#[cfg(test)]
mod tests {
    use leasehold::inspect::{Mode, Waiter, note};

    use super::*;

    #[test]
    fn a_process_finds_its_place_in_the_queue() {
        let waiter = |note| Waiter { note: Some(note), mode: Mode::Exclusive, age: None };
        let (own, other) = (waiter(note("mine").unwrap()), waiter(Note::from_wire("1@elsewhere mine")));
        let place = |waiters, queue: &[&Waiter]| {
            let queue = queue.iter().copied().cloned().collect();
            own_place(&Entry { queue, ..Entry::exclusive("a".parse().unwrap(), Holder::Foreign, None, waiters) })
        };
        assert_eq!(place(2, &[&own, &other]), ", next in line");
        assert_eq!(place(3, &[&other, &other, &own]), ", place 3 in line");
        assert_eq!((place(0, &[]), place(1, &[&other])), (String::new(), String::new()), "it is not in the queue");
        assert_eq!(place(9, &[&other, &other]), ", behind at least 2 in line");
    }
}
