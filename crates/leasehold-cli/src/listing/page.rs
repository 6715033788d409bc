//! One lock with all that is known of it.

use leasehold::inspect::{Entry, Held, Mode, Waiter};
use leasehold::kit::Slot;

use super::words::{holder, mode, process, process_of, remaining, slots, wanted, why_and_token};
use crate::durations::{age, whole_seconds};
use crate::holders::unless_renewed;
use crate::screen::wrapped;
use crate::visible::visible;

/// The lock, its holders and its waiters, each with a line for everything that is known. Lines are broken to fit this width, and nothing is cut.
pub(super) fn page(entry: &Entry, endless: &str, width: Option<u16>) -> String {
    let block = |heading: &str, facts: &[(&str, String)]| {
        let facts = facts.iter().filter(|(_, text)| !text.is_empty());
        let lines = facts.map(|(label, text)| wrapped(&format!("  {label:<8} "), &visible(text), width));
        std::iter::once(wrapped("", &visible(heading), width)).chain(lines).collect::<Vec<_>>().join("\n")
    };
    let more = |all: u32, shown: usize, whom: &str| {
        let hidden = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(shown);
        (hidden > 0).then(|| format!("and {hidden} more {whom}{}", if hidden == 1 { "" } else { "s" }))
    };
    let mut blocks = vec![block(entry.name.as_str(), &summary(entry))];
    let is_mark = Slot::marked_by(entry).is_some();
    for held in &entry.holders {
        blocks.push(match is_mark {
            true => block(&format!("run by {}", process_of(held)), &mark(held)),
            false => block(&format!("held by {}", holder(held)), &lease(held, endless)),
        });
    }
    blocks.extend(more(entry.leases, entry.holders.len(), "holder"));
    for (place, waiter) in (1..).zip(&entry.queue) {
        let who = waiter.note.as_ref().map_or_else(|| "something other than leasehold".to_owned(), process);
        blocks.push(block(&format!("waiter {place}: {who}"), &wait(waiter)));
    }
    blocks.extend(more(entry.waiters, entry.queue.len(), "waiter"));
    blocks.join("\n\n")
}

/// Each with its label; those without a text are not shown.
type Facts = Vec<(&'static str, String)>;

fn summary(entry: &Entry) -> Facts {
    let limit = entry.holders.first().and_then(|held| held.mode.limit());
    let kind = match (Slot::marked_by(entry), limit) {
        (Some(slot), _) => format!("mark of the slot {slot}, whose run has ended"),
        (None, Some(limit)) => format!("semaphore with {}", slots(limit.get())),
        (None, None) => "lock".to_owned(),
    };
    // Nobody holds a lock that marks a slot.
    let holders = if Slot::marked_by(entry).is_some() { String::new() } else { entry.leases.to_string() };
    let votes = entry.votes.as_ref().map_or_else(String::new, ToString::to_string);
    vec![("kind", kind), ("holders", holders), ("waiters", entry.waiters.to_string()), ("votes", votes)]
}

fn lease(held: &Held, endless: &str) -> Facts {
    let [why, token] = why_and_token(held);
    let renewed = unless_renewed(&held.holder);
    let ends =
        held.remaining.map_or_else(|| endless.to_owned(), |_| format!("in {}{renewed}", remaining(held, endless)));
    let since = held.age.map_or_else(|| "for an unknown time".to_owned(), |held| format!("for {}", age(held)));
    let mode = if held.mode == Mode::Exclusive { String::new() } else { mode(held) };
    vec![("why", why), ("token", token), ("held", since), ("ends", ends), ("mode", mode)]
}

fn mark(held: &Held) -> Facts {
    let [why, token] = why_and_token(held);
    let kept = held.remaining.map_or_else(String::new, |left| format!("for {}", whole_seconds(left)));
    vec![("why", why), ("token", token), ("kept", kept)]
}

fn wait(waiter: &Waiter) -> Facts {
    let why = waiter.note.as_ref().map_or_else(String::new, |note| note.why().to_owned());
    let since = waiter.age.map_or_else(|| "for an unknown time".to_owned(), |waited| format!("for {}", age(waited)));
    let wants = if waiter.mode == Mode::Exclusive { String::new() } else { wanted(waiter.mode) };
    vec![("why", why), ("waits", since), ("wants", wants)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::Holder;
    use leasehold::backend::{TokenRange, Width};
    use leasehold::inspect::{Note, Slots};

    use super::*;
    use crate::locks::NEVER_EXPIRES;

    fn held() -> Entry {
        let tokens = TokenRange::above(1_795_295_642_004_294, Width::ONE).unwrap();
        let holder = Holder::Leasehold { tokens, note: Note::from_wire("17@no-such-host the books of the year") };
        let mut entry = Entry::exclusive("nightly".parse().unwrap(), holder, Some(Duration::from_millis(26_500)), 3);
        entry.holders[0].age = Some(Duration::from_secs(125));
        let age = Some(Duration::from_secs(12));
        entry.queue.truncate(2);
        entry.queue[0] = Waiter { note: Some(Note::from_wire("18@no-such-host backup")), mode: Mode::Shared, age };
        entry
    }

    #[test]
    fn a_page_has_all_that_is_known_of_holders_and_waiters() {
        let expected = "nightly\n  kind     lock\n  holders  1\n  waiters  3\n\n\
            held by pid 17 on no-such-host\n  why      the books of the year\n  token    1795295642004295\n  held     for 2m 5s\n  ends     \
            in 27s unless renewed\n\nwaiter 1: pid 18 on no-such-host\n  why      backup\n  waits    for 12s\n  wants    shared\n\n\
            waiter 2: something other than leasehold\n  waits    for an unknown time\n\nand 1 more waiter";
        assert_eq!(page(&held(), NEVER_EXPIRES, None), expected);
        assert_eq!(page(&held(), NEVER_EXPIRES, Some(80)), expected);
    }

    #[test]
    fn a_page_fits_any_terminal_and_nothing_of_it_is_lost() {
        let mut entry = held();
        entry.name = "n".repeat(214).parse().unwrap();
        let why = "a reason of so many words that it takes more than one line";
        let tokens = TokenRange::above(1_795_295_642_004_294, Width::ONE).unwrap();
        let note = Note::from_wire(&format!("17@{} {why}", "h".repeat(60)));
        entry.holders[0].holder = Holder::Leasehold { tokens, note };
        entry.holders[0].mode = Mode::permits(2, 4).unwrap();
        entry.holders[0].slots = Slots::new([0, 3]);
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        let whole = page(&entry, NEVER_EXPIRES, None);
        assert!(whole.contains("semaphore with 4 slots") && whole.contains("mode     slots 0,3 of 4"), "{whole}");
        for width in [40, 80] {
            let text = page(&entry, NEVER_EXPIRES, Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{text}");
            assert_eq!(joined(&text), joined(&whole));
            assert!(text.contains("token    1795295642004295\n"), "{text}");
        }
    }
}
