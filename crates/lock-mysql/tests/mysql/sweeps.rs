//! Names that nobody has used for a day are removed, a few whenever another one is first used. Those that somebody may rely on stay.

use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::{Certainty, Limit, Released, Ttl, limit};

use crate::support::{
    BRIEF, Client, Place, SOON, Session, claim, is_queued, lasting, low, operator, permits, releases, take, waiting,
};

/// In microseconds, as the tables count.
const TWO_DAYS: &str = "172800000000";
/// How many names one sweep looks at.
const SWEPT: usize = 8;

/// Pretends that everything of some names was written two days ago, and ended then.
fn age(session: &Session, names: &[&str]) {
    let names = format!("name IN ('{}')", names.join("', '"));
    let mut script = format!("UPDATE leasehold_lock SET version = version - {TWO_DAYS} WHERE {names};");
    for table in ["hold", "place", "tombstone", "revocation"] {
        script += &format!("UPDATE leasehold_{table} SET until = until - {TWO_DAYS} WHERE {names};");
    }
    session.run(&script).unwrap();
}

/// Uses new names, until all old ones were looked at.
fn sweep(client: &Client, session: &Session) {
    static NEW: AtomicU64 = AtomicU64::new(0);
    let names = usize::try_from(session.value::<i64>("SELECT COUNT(*) FROM leasehold_lock")).unwrap();
    // To the end, from the beginning to the end again, and some for what is new.
    for _ in 0..2 * names / SWEPT + 6 {
        // Each is above all others, as names with dates and numbers are.
        let new = claim(&format!("~new {:09}", NEW.fetch_add(1, Ordering::SeqCst)));
        take(client, &new);
        releases(client, &new);
    }
}

fn is_there(session: &Session, name: &str) -> bool {
    session.value(&format!("SELECT EXISTS (SELECT 1 FROM leasehold_lock WHERE name = '{name}')"))
}

fn rows_of(session: &Session, name: &str) -> i64 {
    let tables = ["lock", "hold", "place", "free_slot", "tombstone", "revocation", "identity"];
    let counts = tables.map(|table| format!("(SELECT COUNT(*) FROM leasehold_{table} WHERE name = '{name}')"));
    session.value(&format!("SELECT {}", counts.join(" + ")))
}

#[test]
fn a_name_that_was_unused_for_a_day_leaves_nothing_and_its_tokens_rise_all_the_same() {
    let place = Place::new();
    let (client, session) = (place.client(), place.session());
    let [free, expired, queue, fenced] = ["free", "expired", "queue", "fenced"].map(claim);
    let highest = low(&take(&client, &free));
    releases(&client, &free);
    take(&client, &expired);
    take(&client, &queue);
    // A client that waits looks at its lock.
    is_queued(place.client().acquire(&waiting("queue"), SOON), 1);
    session.begin("fenced", low(&take(&client, &fenced))).unwrap();
    session.run("COMMIT").unwrap();
    let gpus = permits("gpus", 2, 3);
    take(&client, &gpus);
    releases(&client, &gpus);
    let (revoked, lease) = (claim("revoked"), take(&client, &claim("revoked")));
    client.revoke(&revoked.name, lease.tokens.high(), &operator(), SOON).unwrap();
    client.release(&claim("given-up").release(Certainty::Unknown), SOON).unwrap();
    let names = ["free", "expired", "queue", "fenced", "gpus", "revoked", "given-up"];
    for name in names {
        assert!(rows_of(&session, name) > 0, "{name}");
    }
    sweep(&client, &session);
    assert!(names.iter().all(|name| is_there(&session, name)), "all were used just now");
    age(&session, &names);
    sweep(&client, &session);
    for name in names {
        assert_eq!(rows_of(&session, name), 0, "{name}");
    }
    assert!(low(&take(&client, &claim("free"))) > highest);
}

/// Makes names that somebody relies on, though their rows are two days old. Returns them, and the session whose transaction is open.
fn relied_on(place: &Place) -> ([&'static str; 6], Session) {
    let (client, session, fencing) = (place.client(), place.session(), place.session());
    let [held, fenced] = ["held", "fenced"].map(claim);
    take(&client, &held);
    fencing.begin("fenced", low(&take(&client, &fenced))).unwrap();
    client.release(&claim("given-up").release(Certainty::Unknown), SOON).unwrap();
    let lease = take(&client, &claim("revoked"));
    client.revoke(&lease.name, lease.tokens.high(), &operator(), SOON).unwrap();
    let act = limit::Act::Set(Limit::new(7).unwrap());
    let request = limit::Request { name: "limited".parse().unwrap(), known: Limit::new(2).unwrap(), act };
    client.limit(&request, SOON).unwrap();
    take(&client, &lasting(BRIEF, claim("waited-for")));
    is_queued(client.acquire(&waiting("waited-for"), SOON), 1);
    session.run(&format!("UPDATE leasehold_lock SET version = version - {TWO_DAYS}")).unwrap();
    // Renewals of a fenced lease pass, so it can be aged, too; and of a queue, only the holder is.
    let aged = format!("UPDATE leasehold_hold SET until = until - {TWO_DAYS} WHERE name IN ('fenced', 'waited-for')");
    session.run(&aged).unwrap();
    (["held", "fenced", "given-up", "revoked", "limited", "waited-for"], fencing)
}

#[test]
fn names_that_somebody_may_rely_on_stay() {
    let place = Place::new();
    let (client, session) = (place.client(), place.session());
    let (names, fencing) = relied_on(&place);
    sweep(&client, &session);
    for name in names {
        assert!(is_there(&session, name), "{name}");
    }
    let usage =
        limit::Request { name: "limited".parse().unwrap(), known: Limit::new(2).unwrap(), act: limit::Act::Look };
    assert_eq!(client.limit(&usage, SOON).unwrap().limit.get(), 7);
    fencing.run("COMMIT").unwrap();
    sweep(&client, &session);
    assert!(!is_there(&session, "fenced"), "nobody is in its way any more");
}

/// Somebody else may be about to use the name.
#[test]
fn a_semaphore_with_one_holder_left_loses_no_permit_and_no_slot() {
    let place = Place::new();
    let (client, session) = (place.client(), place.session());
    let (crashed, renewed) = (permits("gpu", 1, 2), permits("gpu", 1, 2));
    take(&client, &crashed);
    let lease = take(&client, &renewed);
    age(&session, &["gpu"]);
    session
        .run(&format!(
            "UPDATE leasehold_hold SET until = until + {TWO_DAYS} WHERE owner = '{}'",
            renewed.owner.to_wire()
        ))
        .unwrap();
    assert_eq!(lease.slots.get(), [1]);
    sweep(&client, &session);
    let next = take(&client, &permits("gpu", 1, 2));
    assert_eq!(next.slots.get(), [0], "the slot of the holder that crashed");
}

#[test]
fn a_name_whose_row_another_transaction_has_is_passed_over() {
    let place = Place::new();
    let (client, session, other) = (place.client(), place.session(), place.session());
    let held = claim("report");
    take(&client, &held);
    assert_eq!(client.release(&held.release(Certainty::Answered), SOON), Ok(Released::Released));
    age(&session, &["report"]);
    other.run("START TRANSACTION; SELECT 1 FROM leasehold_lock WHERE name = 'report' FOR UPDATE").unwrap();
    sweep(&client, &session);
    assert!(is_there(&session, "report"));
    other.run("COMMIT").unwrap();
    sweep(&client, &session);
    assert!(!is_there(&session, "report"));
}

#[test]
fn a_hundred_thousand_old_names_are_removed_a_few_at_a_time_and_delay_nobody() {
    let place = Place::new();
    let (client, session) = (place.client(), place.session());
    let names: Vec<_> = (1..=100_000).map(|i| format!("('night {i}', {i})")).collect();
    session.run(&format!("INSERT INTO leasehold_lock (name, version) VALUES {}", names.join(","))).unwrap();
    for i in 0..500 {
        let new = claim(&format!("new {i}"));
        take(&client, &new);
        releases(&client, &new);
    }
    let removed = 100_000 - session.value::<i64>("SELECT COUNT(*) FROM leasehold_lock WHERE name LIKE 'night %'");
    // Between them, the sweep looks at the new names.
    assert!((3000..=4000).contains(&removed), "{removed}");
}

#[test]
fn latches_that_ended_a_day_ago_are_removed() {
    let place = Place::new();
    let (client, session) = (place.client(), place.session());
    let arrive = |name: &str| {
        let act = lock_core::latch::Act::Arrive { id: "one".parse().unwrap(), call: 1, ttl: Ttl::new(SOON).unwrap() };
        client.latch(&lock_core::latch::Request { name: name.parse().unwrap(), act }, SOON).unwrap();
    };
    ["old", "older", "new"].into_iter().for_each(arrive);
    session.run(&format!("UPDATE leasehold_latch SET until = until - {TWO_DAYS} WHERE name LIKE 'old%'")).unwrap();
    arrive("another");
    assert_eq!(
        session.value::<String>("SELECT GROUP_CONCAT(name ORDER BY name SEPARATOR ' ') FROM leasehold_latch"),
        "another new"
    );
    assert_eq!(session.value::<i64>("SELECT COUNT(*) FROM leasehold_arrival"), 2);
}
