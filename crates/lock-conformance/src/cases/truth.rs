//! What a store says about itself and its locks is true.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::inspect::{Entry, Query, Revoked};
use lock_core::{
    Claim, EntriesEnd, EventSink, Fenced, FencingToken, Holder, Mode, ModeKind, Released, Renewed, RequestOrder,
    StoreEvent, Waiting, Width,
};

use crate::absence::keeps_a_queue;
use crate::asks::{Ask, Said};
use crate::facade::options;
use crate::verbs::{BRIEF, LONG, claim, in_mode, lasting, operator, waiting_claim};
use crate::{Bench, Verbs};

/// Every client of a store says the same, before and after it was used.
pub fn capabilities_do_not_change(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let before = one.capabilities();
    one.take(&claim("a"));
    two.refused(&claim("a"));
    assert_eq!((one.capabilities(), two.capabilities()), (before, before));
    assert!(!before.backend.is_empty());
}

/// A store with a queue gives a place to each claim that asks for one; a store without answers that the lock is held.
pub fn places_are_given_as_the_capabilities_say(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    one.take(&claim("a"));
    if keeps_a_queue(two.capabilities()) {
        assert_eq!(two.queued(&waiting_claim("a")), 1);
    } else {
        two.refused(&waiting_claim("a"));
    }
}

/// A store that pushes notifies the next in line and nobody else; with any other store, a waiter gets its turn by
/// asking again.
pub fn the_next_in_line_is_told_as_the_capabilities_say(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (told, told_others) = (record(&two), record(&three));
    let (first, second) = (claim("a"), waiting_claim("a"));
    one.take(&first);
    two.queued(&second);
    assert_eq!(one.release(&first), Released::Released);
    if two.capabilities().waiting == Waiting::QueueWithPush {
        bench.until("the next in line is told", || !told.lock().unwrap().is_empty());
    } else {
        bench.elapse(Duration::from_millis(200));
        assert!(told.lock().unwrap().is_empty(), "told, though the capabilities know nothing of it");
    }
    let lease = two.take(&second);
    for event in told.lock().unwrap().iter() {
        let StoreEvent::Granted { lease: granted, valid_for, .. } = event else { panic!("a grant, and not {event:?}") };
        assert_eq!((granted.owner, granted.tokens), (lease.owner, lease.tokens));
        assert!(*valid_for <= LONG);
    }
    assert!(told_others.lock().unwrap().is_empty(), "told somebody else");
}

/// Keeps the grants of which a client is notified.
fn record(verbs: &Verbs) -> Arc<Mutex<Vec<StoreEvent>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    verbs.listen(EventSink::new(move |event| {
        if matches!(event, StoreEvent::Granted { .. }) {
            sink.lock().unwrap().push(event);
        }
    }));
    told
}

/// A client that dropped its guard finds the lock free when it asks next, whatever order its store keeps.
pub fn what_was_given_up_first_is_free_first(bench: &Bench) {
    let client = bench.client();
    for turn in 0..50 {
        let guard = client.try_acquire("a", &options(LONG)).unwrap();
        assert!(guard.is_some(), "turn {turn}: its own release came after its claim");
    }
}

/// Requests for one lock that a task makes without waiting for the answers take effect in that order, if the store says so,
/// among such requests for other locks as well.
pub fn requests_for_a_lock_take_effect_in_order_as_the_capabilities_say(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    if one.capabilities().ordering == RequestOrder::Unordered {
        // They may take effect in any order, also in this one.
        return;
    }
    let names: Vec<_> = (0..20).map(|number| format!("a{number}")).collect();
    let claims: Vec<_> = names.iter().map(|name| [(); 3].map(|()| claim(name))).collect();
    claims.iter().for_each(|[held, ..]| drop(one.take(held)));
    let asks = claims.iter().flat_map(|[held, brief, last]| {
        [Ask::Release(held), Ask::Acquire(brief), Ask::Release(brief), Ask::Acquire(last)]
    });
    let Some(said) = one.at_once(&asks.collect::<Vec<_>>()) else { return };
    for (name, said) in names.iter().zip(said.chunks(4)) {
        let released = Said::Released(Released::Released);
        assert_eq!(said, [released, Said::Granted, released, Said::Granted], "{name}");
        two.refused(&claim(name));
    }
}

/// The view for operators shows name, token, note and what remains.
pub fn a_holder_is_shown_as_it_is(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    assert_eq!(two.holder("a"), None);
    let lease = one.take(&claim("a"));
    let entry = two.holder("a").expect("it is held");
    assert_eq!(entry.name, lease.name);
    assert_eq!(entry.waiters, 0);
    match two.capabilities().entries_end {
        EntriesEnd::WithTtl => {
            let remaining = entry.remaining.expect("a lease ends");
            assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");
        }
        EntriesEnd::WithSession => assert_eq!(entry.remaining, None),
    }
    let Holder::Leasehold { tokens, note } = entry.holder else { panic!("the holder is not a leasehold client") };
    assert_eq!((tokens, note.why()), (lease.tokens, "conformance"));
    assert_eq!(note.host(), lock_host::host_name());
    if keeps_a_queue(two.capabilities()) {
        two.queued(&waiting_claim("a"));
        assert_eq!(two.holder("a").map(|entry| entry.waiters), Some(1));
    }
}

/// The view for operators shows who waits, why, and what for: the first in line first.
pub fn waiters_are_shown_in_their_order(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let second = if two.capabilities().modes.contains(&ModeKind::Shared) { Mode::Shared } else { Mode::Exclusive };
    one.take(&in_mode(Mode::Exclusive, claim("a")));
    let waiters = [("the books", Mode::Exclusive), ("", second), ("a x5 j7 backup", Mode::Exclusive)];
    let waiters = waiters.map(|(why, mode)| {
        let waiter = Claim { note: lock_host::note(why).unwrap(), ..in_mode(mode, waiting_claim("a")) };
        two.queued(&waiter);
        waiter
    });
    // Another claim of one that has its place already.
    two.queued(&waiters[0]);
    let entry = two.holder("a").expect("it is held");
    let shown: Vec<_> = entry.queue.iter().map(|waiter| (waiter.note.clone(), waiter.mode)).collect();
    assert_eq!(shown, waiters.map(|waiter| (Some(waiter.note), waiter.terms.mode)));
    assert_eq!(entry.waiters, 3);
    assert_eq!(listed(&two, "a", Query::LIMIT_DEFAULT)["a"].queue.len(), 3);
}

/// A lease is revoked by its own token only.
pub fn a_revocation_by_another_token_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&claim("a"));
    let (low, high) = (lease.tokens.low().get(), lease.tokens.high().get());
    for wrong in [low - 1, high + 1, FencingToken::MAX.get()].into_iter().filter_map(|n| FencingToken::new(n).ok()) {
        assert_eq!(two.revoke("a", wrong), Revoked::NotHeld, "{wrong} of {}", lease.tokens);
    }
    assert_eq!(two.revoke("b", lease.tokens.low()), Revoked::NotHeld);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert_eq!(two.revoke("a", lease.tokens.low()), Revoked::Revoked);
    assert_eq!(one.fence(&lease), Fenced::NotHeld);
    assert_eq!(two.revoke("a", lease.tokens.low()), Revoked::NotHeld);
    assert!(two.take(&claim("a")).tokens.low() > lease.tokens.high());
}

/// Whose lease was revoked learns that and by whom, also while somebody else has the lock.
pub fn a_holder_learns_who_revoked_its_lease(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (released, lease) = (claim("b"), one.take(&Claim { width: Width::for_waiters(3), ..claim("a") }));
    let other = one.take(&released);
    assert_eq!(two.revoked_by(&lease), None);
    two.revoke("a", lease.tokens.low());
    let next = two.take(&claim("a"));
    one.release(&released);
    for _ in 0..2 {
        assert_eq!(one.renew(&lease), Renewed::Revoked { by: operator() });
        assert_eq!(two.revoked_by(&lease), Some(operator()));
    }
    assert_eq!((one.renew(&other), two.revoked_by(&other)), (Renewed::NotHeld, None));
    assert!(matches!(two.renew(&next), Renewed::Renewed { .. }));
}

/// Page by page, a listing shows every lock that matches, and no other.
pub fn listings_are_complete(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let jobs: Vec<String> = (0..60).map(|number| format!("job:{number}")).collect();
    let odd = ["jobs", "a job:1", "Job:1", "job[1]", "job\\1", "späť", "100%", "job:1é"];
    for name in jobs.iter().map(String::as_str).chain(odd) {
        one.take(&claim(name));
    }
    let all: Vec<&str> = jobs.iter().map(String::as_str).chain(odd).collect();
    let starting = |start: &str| all.iter().copied().filter(|name| name.starts_with(start)).collect::<Vec<_>>();
    for limit in [1, 7, 1000] {
        expect_listing(&two, "*", limit, &all);
        expect_listing(&two, "job:*", limit, &starting("job:"));
    }
    expect_listing(
        &two,
        "job:1?",
        7,
        &["job:10", "job:11", "job:12", "job:13", "job:14", "job:15", "job:16", "job:17", "job:18", "job:19", "job:1é"],
    );
    expect_listing(&two, "job[1]", 7, &["job[1]"]);
    expect_listing(&two, "job\\*", 7, &["job\\1"]);
    expect_listing(&two, "sp?ť", 7, &["späť"]);
    expect_listing(&two, "100%", 7, &["100%"]);
    expect_listing(&two, "nobody:*", 7, &[]);
}

/// Nothing changes hands meanwhile, so nothing may be missed.
fn expect_listing(verbs: &Verbs, pattern: &str, limit: u32, expected: &[&str]) {
    let seen = listed(verbs, pattern, limit);
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected, "{pattern:?} by {limit}");
    assert!(seen.values().all(|entry| matches!(entry.holder, Holder::Leasehold { .. })));
}

/// All pages of a listing.
fn listed(verbs: &Verbs, pattern: &str, limit: u32) -> BTreeMap<String, Entry> {
    let mut seen: BTreeMap<String, Entry> = BTreeMap::new();
    let mut query = Query::matching(pattern).limit(limit);
    for _ in 0..1000 {
        let page = verbs.list(&query);
        seen.extend(page.entries.into_iter().map(|entry| (entry.name.to_string(), entry)));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(query.cursor, None, "{pattern:?}: a listing without an end");
    seen
}

/// A lock that was released or has expired is held by nobody.
pub fn what_is_over_is_not_shown(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let released = claim("released");
    one.take(&released);
    one.take(&lasting(BRIEF, claim("expired")));
    one.take(&claim("held"));
    assert_eq!(one.release(&released), Released::Released);
    bench.outlive(BRIEF);
    assert_eq!(two.holder("released"), None);
    assert_eq!(two.holder("expired"), None);
    expect_listing(&two, "*", 10, &["held"]);
}
