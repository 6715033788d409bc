//! Texts that the table and the page of one lock share.

use leasehold::Holder;
use leasehold::inspect::{Held, Mode, Note};

use crate::durations::whole_seconds_up;
use crate::holders::is_gone;

/// The process of a holder, and whether it is gone.
pub(super) fn holder(held: &Held) -> String {
    process_of(held) + if is_gone(&held.holder) == Some(true) { " (gone)" } else { "" }
}

/// The process of a holder.
pub(super) fn process_of(held: &Held) -> String {
    match &held.holder {
        Holder::Leasehold { note, .. } => process(note),
        Holder::Foreign => held.holder.to_string(),
    }
}

pub(super) fn process(note: &Note) -> String {
    note.pid().map_or_else(|| note.host().to_owned(), |pid| format!("pid {pid} on {}", note.host()))
}

/// Reason and tokens; empty for something foreign.
pub(super) fn why_and_token(held: &Held) -> [String; 2] {
    match &held.holder {
        Holder::Leasehold { tokens, note } => [note.why().to_owned(), tokens.to_string()],
        Holder::Foreign => Default::default(),
    }
}

/// How long a lease lasts if nobody renews it. `endless` is said of one that has no remaining time.
pub(super) fn remaining(held: &Held, endless: &str) -> String {
    held.remaining.map_or_else(|| endless.to_owned(), |left| whole_seconds_up(left).to_string())
}

pub(super) fn mode(held: &Held) -> String {
    let Mode::Permits { limit, .. } = held.mode else { return held.mode.kind().to_string() };
    let word = if held.slots.get().len() == 1 { "slot" } else { "slots" };
    format!("{word} {} of {limit}", held.slots)
}

/// The terms of a waiter.
pub(super) fn wanted(mode: Mode) -> String {
    match mode.count() {
        0 => mode.kind().to_string(),
        count => slots(count),
    }
}

/// So many slots of a semaphore.
pub(crate) fn slots(count: u32) -> String {
    let word = if count == 1 { "slot" } else { "slots" };
    format!("{count} {word}")
}
