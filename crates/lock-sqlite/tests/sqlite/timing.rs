//! By which clock leases end.

use std::time::Duration;

use lock_core::{BlockingBackend, Certainty, Parting, Renewed};
use lock_sqlite::blocking::Sqlite;

use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, low, parting, position, secs, ttl};
use lock_core::Claim;

#[test]
fn only_the_clock_of_the_leases_ends_them() {
    let rig = Rig::new();
    let client = rig.client();
    let lease = granted(client.ask(&Claim { ttl: ttl("100ms"), ..claim("a") }));
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
    let holder = Claim { ttl: ttl("1h"), ..claim("a") };
    let lease = granted(before.ask(&holder));
    position(before.ask(&claim("a")));
    let ghost = claim("b");
    before.release(&Parting { certainty: Certainty::Unknown, ..parting(&ghost) }, WITHIN).unwrap();
    drop(before);

    let after = Sqlite::open_with(&rig.config(), rig.timing().with_boot("another boot")).unwrap();
    assert_eq!(after.extend(&lease), Renewed::NotHeld);
    assert_eq!(after.inspect().unwrap().holder(&holder.name, WITHIN).unwrap(), None);
    assert!(granted(after.ask(&impatient("a"))).tokens.low() > lease.tokens.high());
    granted(after.ask(&ghost));
}

#[test]
fn the_clock_of_the_host_works_too() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    granted(client.ask(&Claim { ttl: ttl("200ms"), ..claim("a") }));
    assert!(busy(client.ask(&impatient("a"))) <= Duration::from_millis(200));
    std::thread::sleep(Duration::from_millis(210));
    granted(client.ask(&Claim { ttl: ttl("1h"), ..claim("a") }));
    assert!(busy(client.ask(&impatient("a"))) > secs(3000));
}
