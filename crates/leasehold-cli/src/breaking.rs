//! `leasehold break`: ends the lease of another process.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin, stdout};

use leasehold::backend::EntriesEnd;
use leasehold::inspect::{Entry, Held, Note, Revoked};
use leasehold::kit::Slot;
use leasehold::{FencingToken, Holder, LockName};
use serde_json::json;

use crate::args::BreakArgs;
use crate::durations::{age, whole_seconds_up};
use crate::exit::{Exit, Failure};
use crate::holders::{is_gone, name_of, spans, unless_renewed};
use crate::listing::Lease;
use crate::locks::Locks;
use crate::report::{json, print, say_question};
use crate::screen::beside;
use crate::store::Store;
use crate::visible::visible;

/// Ends the lease that has this token, if it still holds the lock; without a token, the only lease that holds it.
pub(crate) fn break_lease(args: &BreakArgs) -> Result<Exit, Failure> {
    let store = Store::choose(args.store.url.as_deref())?.shared()?;
    let asks = !args.yes;
    if asks && !(stdin().is_terminal() && stderr().is_terminal()) {
        let message = "there is no terminal to ask for confirmation; nothing was changed; give --yes to break the lock \
                       without asking, and --token N to break no other lease than the one that `leasehold show NAME` prints";
        return Err(Failure::new(Exit::Usage, message));
    }
    let locks = Locks::connect(&store)?;
    let (name, ends) = (&args.name, locks.entries_end());
    let entry = locks.holder(name)?;
    let token = args.token.map_or_else(|| only_token(name, entry.as_ref(), ends), Ok)?;
    let target = Target::find(entry.as_ref(), token);
    match &target {
        Some(target) if asks && !target.is_confirmed(name, token)? => {
            return Err(Failure::new(Exit::Unchanged, "nothing was changed"));
        }
        None if !may_remain(entry.as_ref()) => return Err(unchanged(name, Some(token), entry.as_ref(), ends)),
        Some(_) | None => {}
    }
    if let Revoked::NotHeld = locks.revoke(name, token, &args.why)? {
        return Err(unchanged(name, Some(token), locks.holder(name)?.as_ref(), ends));
    }
    let target = target.unwrap_or_default();
    if args.json {
        // The lease is null if the store does not show it.
        let lease = target.held.map(Lease::from);
        print(&json(&json!({ "name": name.as_str(), "broken": true, "token": token.get(), "lease": lease }))?)
    } else {
        print(&beside(0, &visible(&target.sentence(name, token)), &stdout()))
    }
}

/// Whether the lease may still exist although the store does not show it: an earlier `break` may have missed some nodes of a quorum.
fn may_remain(entry: Option<&Entry>) -> bool {
    entry.is_none_or(|entry| entry.votes.is_some())
}

/// The token of the only lease that holds the lock.
fn only_token(name: &LockName, entry: Option<&Entry>, ends: EntriesEnd) -> Result<FencingToken, Failure> {
    match entry {
        Some(entry) if entry.leases > 1 => {
            let message = format!(
                "{name} is held by {} leases; nothing was changed; name the one to end by its --token, which `leasehold show NAME` prints",
                entry.leases
            );
            Err(Failure::new(Exit::Usage, message))
        }
        Some(Entry { holder: Holder::Leasehold { tokens, .. }, .. }) => Ok(tokens.high()),
        Some(_) | None => Err(unchanged(name, None, entry, ends)),
    }
}

/// The lease to end, as far as the store shows it.
#[derive(Default)]
struct Target<'a> {
    /// `None` if the store does not show it.
    held: Option<&'a Held>,
    /// The first waiter, if it says who it is.
    next: Option<&'a Note>,
    /// `None` if the store does not list them, like a quorum.
    waiters: Option<u32>,
    /// The slot that it marks as run.
    marks: Option<Slot>,
}

impl<'a> Target<'a> {
    /// `None` if the store shows all leases, and none has this token.
    fn find(entry: Option<&'a Entry>, token: FencingToken) -> Option<Self> {
        let entry = entry?;
        let held = entry.holders.iter().find(|held| spans(held, token));
        (held.is_some() || !entry.lists_all_leases()).then_some(Self {
            held,
            next: entry.queue.first().and_then(|first| first.note.as_ref()),
            waiters: entry.votes.is_none().then_some(entry.waiters),
            marks: Slot::marked_by(entry),
        })
    }

    /// Who holds the lease.
    fn holder(&self) -> String {
        let unknown = || "a holder that the store does not show".to_owned();
        self.held.map_or_else(unknown, |held| name_of(Some(&held.holder)))
    }

    /// Whether its process has ended. False if that is unknown, as for a process on another machine.
    fn is_gone(&self) -> bool {
        self.held.is_some_and(|held| is_gone(&held.holder) == Some(true))
    }

    /// Asks on the terminal.
    fn is_confirmed(&self, name: &LockName, token: FencingToken) -> Result<bool, Failure> {
        say_question(&self.question(name, token));
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer).map_err(|error| Failure::system("cannot read the answer", error))?;
        if !answer.ends_with('\n') {
            // The end of the input: the cursor is still behind the question.
            let _ = writeln!(stderr());
        }
        Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    fn question(&self, name: &LockName, token: FencingToken) -> String {
        if let Some(slot) = self.marks {
            return format!(
                "{name} marks the slot {slot} as run: without it, the slot can run again.\nBreak it? [y/N] "
            );
        }
        let left = self.held.and_then(|held| {
            let (left, renewed) = (whole_seconds_up(held.remaining?), unless_renewed(&held.holder));
            Some(format!(", for {left}{renewed}"))
        });
        let left = left.unwrap_or_default();
        let since = self.held.and_then(|held| held.age);
        let since = since.map_or_else(
            || "; the store does not say since when".to_owned(),
            |held| format!("; it got the lock {} ago", age(held)),
        );
        let next = match (self.waiters, self.next) {
            (None, _) => "the store does not list its waiters".to_owned(),
            (Some(0), _) => "it has no waiters".to_owned(),
            (Some(1), None) => "1 other waits for it and gets it".to_owned(),
            (Some(1), Some(next)) => format!("{next} waits for it and gets it"),
            (Some(more), None) => format!("{more} others wait for it, and the first one gets it"),
            (Some(more), Some(next)) => format!("{more} others wait for it, and {next} gets it"),
        };
        let holder = self.holder();
        let warning = if self.is_gone() { "" } else { "The holder may keep working until its next renewal.\n" };
        format!("{name} is held by {holder} with token {token}{left}{since}; {next}\n{warning}Break it? [y/N] ")
    }

    fn sentence(&self, name: &LockName, token: FencingToken) -> String {
        let Some(held) = self.held.filter(|_| !self.is_gone()) else {
            // The process has ended, which the question has said, or the store does not show the lease.
            let holder = self.held.map_or_else(|| self.holder(), |held| held.holder.to_string());
            return format!("broke {name}: {holder} has lost it (token {token})");
        };
        let holder = self.holder();
        let learns = if held.remaining.is_some() { " and learns of it at its next renewal" } else { "" };
        format!(
            "broke {name}: {holder} has lost it (token {token}){learns}; writes with that token are refused where tokens are \
             checked"
        )
    }
}

/// No lease has this token, or nobody has one. Says which leases hold the lock.
fn unchanged(name: &LockName, token: Option<FencingToken>, entry: Option<&Entry>, ends: EntriesEnd) -> Failure {
    let held = entry.map_or(&[][..], |entry| &entry.holders);
    let tokens: Vec<_> = held.iter().filter_map(|held| held.holder.tokens()).map(|tokens| tokens.to_string()).collect();
    let given = token.map_or_else(String::new, |token| format!(" {token}"));
    let now = match (held, tokens.as_slice()) {
        _ if token.is_some_and(|token| held.iter().any(|held| spans(held, token))) => format!(
            "the lease of {name} with token{given} has expired, and a transaction that is fenced by it keeps the lock; end that \
             transaction at the server (pg_terminate_backend in PostgreSQL, KILL in MySQL)"
        ),
        ([], _) => format!("{name} is not held"),
        (_, []) if ends == EntriesEnd::WithSession => format!(
            "{name} is held by something other than leasehold, which has no token; end that program: its lock is free when its \
             session ends"
        ),
        (_, []) => format!(
            "{name} is held by something other than leasehold, which has no token; wait until it expires, or delete its key \
             from the store"
        ),
        ([held, ..], [one]) => {
            let holder = name_of(Some(&held.holder));
            format!("no lease of {name} has token{given}; it is held by {holder} with token {one}")
        }
        (_, several) => {
            format!("no lease of {name} has token{given}; its leases have the tokens {}", several.join(", "))
        }
    };
    Failure::new(Exit::Unchanged, format!("{now}; nothing was changed"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::backend::TokenRange;
    use leasehold::inspect::Votes;

    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn entry(low: u64, high: u64) -> Entry {
        let (tokens, note) =
            (TokenRange::new(token(low), token(high)).unwrap(), Note::from_wire("5@no-such-host nightly"));
        let holder = Holder::Leasehold { tokens, note };
        Entry::exclusive("a".parse().unwrap(), holder, Some(Duration::from_millis(26_500)), 2)
    }

    #[test]
    fn the_question_says_that_a_slot_can_run_again() {
        let (name, holder) = ("nightly@2026-11-29T03:00:00Z".parse().unwrap(), entry(7, 9).holder);
        let mark = Entry::exclusive(name, holder, Some(Duration::from_secs(7 * 86_400)), 0);
        let question = Target::find(Some(&mark), token(8)).unwrap().question(&mark.name, token(8));
        assert!(question.contains("marks the slot 2026-11-29T03:00:00Z as run"), "{question}");
    }

    #[test]
    fn the_question_names_holder_note_token_and_who_waits() {
        let mut entry = entry(7, 9);
        let question = Target::find(Some(&entry), token(8)).unwrap().question(&entry.name, token(8));
        for words in ["5 on no-such-host", "nightly", "token 8", "for 27s", "since when", "2 others wait", "[y/N] "] {
            assert!(question.contains(words), "{words}: {question}");
        }
        entry.holders[0].age = Some(Duration::from_secs(125));
        let question = Target::find(Some(&entry), token(8)).unwrap().question(&entry.name, token(8));
        assert!(question.contains("; it got the lock 2m 5s ago; "), "{question}");
        entry.queue[0].note = Some(Note::from_wire("6@h backup"));
        let question = Target::find(Some(&entry), token(8)).unwrap().question(&entry.name, token(8));
        assert!(question.contains("2 others wait for it, and pid 6 on h (backup) gets it"), "{question}");
    }

    #[test]
    fn without_a_token_the_only_lease_is_meant() {
        let only = |entry: Option<&Entry>| only_token(&"a".parse().unwrap(), entry, EntriesEnd::WithTtl);
        let mut entry = entry(7, 9);
        assert_eq!(only(Some(&entry)).ok(), Some(token(9)));
        let free = only(None).err().unwrap();
        assert_eq!((free.exit, &*free.message), (Exit::Unchanged, "a is not held; nothing was changed"));
        let foreign = Entry::exclusive(entry.name.clone(), Holder::Foreign, None, 0);
        assert!(only(Some(&foreign)).err().unwrap().message.contains("something other than leasehold"));
        entry.leases = 2;
        let several = only(Some(&entry)).err().unwrap();
        assert!(several.exit == Exit::Usage && several.message.contains("--token"), "{}", several.message);
    }

    #[test]
    fn another_token_names_the_present_ones() {
        let mut entry = entry(7, 9);
        assert!(Target::find(Some(&entry), token(6)).is_none() && Target::find(None, token(6)).is_none());
        let said = |entry: Option<&Entry>| {
            unchanged(&"a".parse().unwrap(), Some(token(6)), entry, EntriesEnd::WithTtl).message
        };
        assert!(said(Some(&entry)).contains("with token 7..9"), "{}", said(Some(&entry)));
        entry.holders.push(entry.holders[0].clone());
        assert!(said(Some(&entry)).contains("the tokens 7..9, 7..9"), "{}", said(Some(&entry)));
        assert_eq!(said(None), "a is not held; nothing was changed");
        let foreign = Entry::exclusive(entry.name.clone(), Holder::Foreign, None, 0);
        assert!(said(Some(&foreign)).contains("something other than leasehold"));
    }

    #[test]
    fn only_the_store_can_say_that_nothing_is_left_of_a_lease_that_nodes_do_not_show() {
        let mut entry = entry(7, 9);
        assert!(may_remain(None) && !may_remain(Some(&entry)));
        let none = Vec::new;
        entry.votes = Some(Votes { held: none(), not_held: none(), abstaining: none(), unreachable: none() });
        assert!(may_remain(Some(&entry)));
    }

    /// A store that does not end a lease which it still shows cannot end it.
    #[test]
    fn a_lease_that_has_expired_and_is_shown_is_kept_by_a_transaction() {
        let entry = entry(7, 9);
        let said = unchanged(&entry.name, Some(token(8)), Some(&entry), EntriesEnd::WithTtl).message;
        assert!(said.contains("token 8 has expired") && said.contains("end that transaction"), "{said}");
    }

    #[test]
    fn a_lease_beyond_those_that_are_shown_can_be_broken() {
        let mut entry = entry(7, 9);
        entry.leases = 200;
        let target = Target::find(Some(&entry), token(6)).unwrap();
        assert!(target.sentence(&entry.name, token(6)).contains("does not show"));
    }
}
