//! Which clock ends leases.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{Answer, BlockingBackend, Certainty, Claim, ErrorKind, Released, Renewed, Terms};
use lock_host::ManualClock;
use lock_sqlite::blocking::Sqlite;
use lock_sqlite::{SqliteConfig, Timing};
use test_support::Finish;

use crate::elsewhere::{OPENER, PATH, is_permitted, outcome, tell, unshared};
use crate::rig::{
    Ask, Rig, WITHIN, at_once, busy, claim, granted, impatient, lasting, low, permits, position, reader, secs, ttl,
};

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

/// A client after a reboot, on a machine that was up for some days before.
fn rebooted(rig: &Rig) -> Sqlite {
    let timing = Timing::with_clock(Arc::new(ManualClock::new())).with_boot("another boot");
    Sqlite::open_with(&rig.config(), timing).unwrap()
}

#[test]
fn a_reboot_frees_everything_but_the_tokens() {
    let rig = Rig::new();
    rig.clock.advance(secs(200_000));
    let before = rig.client();
    let holder = Claim { terms: Terms::exclusive(ttl("1h")), ..claim("a") };
    let lease = granted(before.ask(&holder));
    position(before.ask(&claim("a")));
    let ghost = claim("b");
    before.release(&ghost.release(Certainty::Unknown), WITHIN).unwrap();
    drop(before);

    let after = rebooted(&rig);
    assert_eq!(after.extend(&lease), Renewed::NotHeld);
    assert_eq!(after.holder(&holder.name, WITHIN).unwrap(), None);
    assert!(granted(after.ask(&impatient("a"))).tokens.low() > lease.tokens.high());
    granted(after.ask(&ghost));
}

#[test]
fn a_lease_of_the_past_is_not_released() {
    let rig = Rig::new();
    rig.clock.advance(secs(200_000));
    let client = rig.client();
    let [ended, earlier] = [claim("a"), claim("b")].map(|claim| Claim { terms: Terms::exclusive(ttl("1s")), ..claim });
    granted(client.ask(&earlier));
    let after = rebooted(&rig);
    assert_eq!(after.part(&earlier), Released::NotHeld);
    granted(after.ask(&ended));
    assert_eq!(after.part(&ended), Released::Released);
    assert_eq!(after.part(&ended), Released::NotHeld);
}

/// LXC and systemd-nspawn give each container a boot id of its own.
#[test]
fn containers_with_boot_ids_of_their_own_exclude_each_other_and_their_host() {
    let rig = Rig::new();
    let open = |boot| Sqlite::open_with(&rig.config(), rig.timing().with_boot(boot)).unwrap();
    let clients = [rig.client(), open("container 1"), open("container 2")];
    let others =
        |one: usize| clients.iter().enumerate().filter(move |(other, _)| *other != one).map(|(_, client)| client);
    for (one, client) in clients.iter().enumerate() {
        let mine = claim("a");
        let lease = granted(client.ask(&mine));
        others(one).for_each(|other| assert!(busy(other.ask(&impatient("a"))) > secs(29)));
        assert!(busy(open("container 3").ask(&impatient("a"))) > secs(29));
        assert!(matches!(client.extend(&lease), Renewed::Renewed { .. }));
        let holder = open("container 4").holder(&mine.name, WITHIN).unwrap();
        assert!(holder.is_some(), "an operator sees it");
        assert_eq!(client.part(&mine), Released::Released);
    }
    let [host, one, two] = &clients;
    granted(host.ask(&reader("b")));
    granted(one.ask(&reader("b")));
    busy(two.ask(&impatient("b")));
    granted(host.ask(&permits("c", 1, 2)));
    granted(one.ask(&permits("c", 1, 2)));
    busy(two.ask(&at_once(permits("c", 1, 2))));
}

#[test]
fn containers_with_boot_ids_of_their_own_wait_in_one_line() {
    let rig = Rig::new();
    let container = Sqlite::open_with(&rig.config(), rig.timing().with_boot("container")).unwrap();
    let host = rig.client();
    let [first, second, third] = [claim("a"), claim("a"), claim("a")];
    granted(host.ask(&first));
    assert_eq!(position(container.ask(&second)), 1);
    assert_eq!(position(host.ask(&third)), 2);
    host.part(&first);
    assert_eq!(position(host.ask(&third)), 1);
    granted(container.ask(&second));
    container.part(&second);
    granted(host.ask(&third));
}

/// The clock may be past the last write: the machine is up for longer now than it was before.
#[test]
fn another_boot_that_proves_nothing_is_waited_for() {
    let rig = Rig::new();
    granted(rig.client().ask(&lasting("20s", claim("a"))));
    let after = Sqlite::open_with(&rig.config(), rig.timing().with_boot("another boot")).unwrap();
    assert_eq!(busy(after.ask(&impatient("a"))), secs(20));
    rig.clock.advance(secs(20));
    granted(after.ask(&impatient("a")));
}

/// Leaders hold since the machine was started: only the renewals tell that it ran for longer than it does now.
#[test]
fn a_renewal_before_a_reboot_is_a_write() {
    for claim in [claim("a"), reader("a"), permits("a", 1, 1)] {
        let rig = Rig::new();
        let before = rig.client();
        let lease = granted(before.ask(&claim));
        let after = ManualClock::new();
        after.advance(secs(15));
        for _ in 0..3 {
            rig.clock.advance(secs(10));
            assert!(matches!(before.extend(&lease), Renewed::Renewed { .. }));
        }
        let timing = Timing::with_clock(Arc::new(after)).with_boot("another boot");
        let after = Sqlite::open_with(&rig.config(), timing).unwrap();
        granted(after.ask(&Claim { terms: claim.terms, width: claim.width, ..impatient("a") }));
    }
}

#[test]
fn a_boot_id_that_is_mounted_frees_nothing() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    granted(client.ask(&lasting("1h", claim("a"))));
    let id = rig.directory.path().join("boot_id");
    std::fs::write(&id, "11111111-2222-3333-4444-555555555555\n").unwrap();
    let mounted = |then: &str| {
        let mut command = unshared(&["--mount", "sh", "-c"]);
        command.arg(format!("mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && {then}"));
        command.arg("sh").arg(&id);
        command
    };
    if !is_permitted(mounted("true")) {
        return;
    }
    let mut command = mounted("grep -q 1111 /proc/sys/kernel/random/boot_id && exec \"$@\"");
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "timing::asks_for_a", "--nocapture"]);
    let remaining = outcome(&command.env(PATH, rig.path()).finish());
    let remaining: u64 = remaining.parse().unwrap_or_else(|_| panic!("{remaining}"));
    assert!((3400..=3600).contains(&remaining), "{remaining} s");
}

/// As systemd does it for services with `ProcSubset=pid`.
#[test]
fn a_process_without_the_boot_id_is_refused() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    granted(client.ask(&lasting("1h", claim("a"))));
    let mounted = |then: &str| {
        let mut command = unshared(&["--mount", "--pid", "--fork", "sh", "-c"]);
        command.arg(format!("mount -t proc -o subset=pid proc /proc && {then}")).arg("sh");
        command
    };
    if !is_permitted(mounted("true")) {
        return;
    }
    let mut command = mounted("exec \"$@\"");
    command.arg(std::env::current_exe().unwrap()).args(["--exact", OPENER, "--nocapture"]);
    let refusal = outcome(&command.env(PATH, rig.path()).finish());
    assert!(refusal.starts_with("Config") && refusal.contains("mount /proc"), "{refusal}");
}

#[test]
fn a_process_that_may_open_no_more_files_is_told_so() {
    let rig = Rig::new();
    let mut command = Command::new("timeout");
    command.args(["60", "sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "timing::opens_with_few_files", "--nocapture"]);
    let outcome = outcome(&command.env(PATH, rig.path()).finish());
    assert_eq!(outcome, "ok", "not said at each step");
}

/// Played by another test as a process of its own; does nothing otherwise. Opening with so many files left fails for want of more,
/// until there are enough.
#[test]
fn opens_with_few_files() {
    let Ok(path) = std::env::var(PATH) else { return };
    let mut others = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        others.push(file);
    }
    let taken = others.len();
    loop {
        match Sqlite::open(&SqliteConfig::new(&path)) {
            Ok(_) => return tell("ok"),
            Err(error) if error.kind() == ErrorKind::Unavailable && error.to_string().contains("ulimit") => {}
            Err(error) => return tell(format_args!("with {} files: {error:?}", taken - others.len())),
        }
        assert!(others.pop().is_some(), "no number of files is enough");
    }
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
