//! Which clock ends leases.

use std::time::{Duration, Instant};

use lock_core::{Answer, BlockingBackend, Certainty, Claim, Released, Renewed, Terms};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use test_support::Finish;

use crate::elsewhere::{PATH, is_permitted, outcome, tell, unshared};
use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, low, position, secs, ttl};

#[test]
fn only_the_clock_of_the_leases_ends_them() {
    let rig = Rig::new();
    let client = rig.client();
    let lease = granted(client.ask(&Claim { terms: Terms::exclusive(ttl("100ms")), ..claim("a") }));
    // Real time passes, and the wall clock with it.
    std::thread::sleep(Duration::from_millis(300));
    busy(client.ask(&impatient("a")));
    rig.clock.advance(Duration::from_millis(99));
    busy(client.ask(&impatient("a")));
    rig.clock.advance(Duration::from_millis(1));
    assert!(low(&granted(client.ask(&impatient("a")))) > low(&lease));
}

#[test]
fn a_reboot_frees_everything_but_the_tokens() {
    let rig = Rig::new();
    let before = rig.client();
    let holder = Claim { terms: Terms::exclusive(ttl("1h")), ..claim("a") };
    let lease = granted(before.ask(&holder));
    position(before.ask(&claim("a")));
    let ghost = claim("b");
    before.release(&ghost.release(Certainty::Unknown), WITHIN).unwrap();
    drop(before);

    let after = Sqlite::open_with(&rig.config(), rig.timing().with_boot("another boot")).unwrap();
    assert_eq!(after.extend(&lease), Renewed::NotHeld);
    assert_eq!(after.inspect().unwrap().holder(&holder.name, WITHIN).unwrap(), None);
    assert!(granted(after.ask(&impatient("a"))).tokens.low() > lease.tokens.high());
    granted(after.ask(&ghost));
}

#[test]
fn a_lease_of_the_past_is_not_released() {
    let rig = Rig::new();
    let client = rig.client();
    let [ended, earlier] = [claim("a"), claim("b")].map(|claim| Claim { terms: Terms::exclusive(ttl("1s")), ..claim });
    granted(client.ask(&earlier));
    let after = Sqlite::open_with(&rig.config(), rig.timing().with_boot("another boot")).unwrap();
    assert_eq!(after.part(&earlier), Released::NotHeld);
    granted(after.ask(&ended));
    rig.clock.advance(secs(1));
    assert_eq!(after.part(&ended), Released::NotHeld);
}

#[test]
fn the_clock_of_the_host_works_too() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    let (begin, short) = (Instant::now(), secs(1));
    granted(client.ask(&Claim { terms: Terms::exclusive(ttl("1s")), ..claim("a") }));
    let next = Claim { terms: Terms::exclusive(ttl("1h")), ..impatient("a") };
    while let Answer::Busy { remaining, .. } = client.ask(&next) {
        assert!(remaining.unwrap() <= short && begin.elapsed() < WITHIN, "{remaining:?} left of {short:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(begin.elapsed() >= short, "a lease of {short:?} ended after {:?}", begin.elapsed());
    assert!(busy(client.ask(&impatient("a"))) > secs(3000));
}

#[test]
fn a_time_namespace_that_shifts_the_clock_frees_nothing() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    granted(client.ask(&Claim { terms: Terms::exclusive(ttl("1h")), ..claim("a") }));
    for offset in ["100000", "-300"] {
        let shifted = ["--time", "--boottime", offset, "--fork"];
        // An offset below zero needs a machine that is up for longer.
        let mut probe = unshared(&shifted);
        probe.arg("true");
        if !is_permitted(probe) {
            continue;
        }
        let mut command = unshared(&shifted);
        command.arg(std::env::current_exe().unwrap()).args(["--exact", "timing::asks_for_a", "--nocapture"]);
        let remaining = outcome(&command.env(PATH, rig.path()).finish());
        let remaining: u64 = remaining.parse().unwrap_or_else(|_| panic!("{offset}: {remaining}"));
        assert!((3400..=3600).contains(&remaining), "{offset}: {remaining} s");
    }
}

/// Played by another test as a process of its own; does nothing otherwise.
#[test]
fn asks_for_a() {
    let Ok(path) = std::env::var(PATH) else { return };
    let client = Sqlite::open(&SqliteConfig::new(path)).unwrap();
    match client.ask(&impatient("a")) {
        Answer::Busy { remaining, .. } => tell(remaining.unwrap().as_secs()),
        answer @ (Answer::Granted { .. } | Answer::Queued { .. }) => tell(format_args!("{answer:?}")),
    }
}
