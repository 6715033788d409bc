//! Clients that stop for so long that the row of their lock has gone and come again, and claims that arrive after they were given up.

use lock_core::{Answer, BackendError, Claim, Mode, ReleaseRequest};

use crate::support::{
    GATE, Gate, Place, SOON, blocks_another, claim, end, granted, is_busy, meanwhile, release_of, releases, take,
};

const COMMIT: &str = "IF a->'version' <> 'null' THEN\n    SELECT";

/// A reader is stopped before its commit while the lock is free. Its row is swept, and comes again when another client takes the lock and
/// leaves it kept.
fn reader_that_sleeps_for_days(changes: &[(&str, &str)]) -> Result<Answer, BackendError> {
    let gate = format!("{GATE}{COMMIT}");
    let place = Place::twin(&[&[(COMMIT, gate.as_str())], changes].concat());
    let (client, session, first) = (place.client(), place.session(), claim("report"));
    take(&client, &first);
    releases(&client, &first);
    let (gate, sleeping) = (Gate::close(&place), place.client());
    let reading = meanwhile(move || sleeping.acquire(&claim("report").in_mode(Mode::Shared), SOON));
    gate.wait_for_one();
    session.run("DELETE FROM lock").unwrap();
    let second = claim("report");
    take(&client, &second);
    let keep = Some(SOON * 10);
    client.release(&ReleaseRequest { keep, ..release_of(&second) }, SOON).unwrap();
    gate.open();
    end(reading)
}

#[test]
fn a_client_that_slept_while_the_row_of_its_lock_was_swept_decides_again() {
    is_busy(reader_that_sleeps_for_days(&[]));
}

#[test]
fn versions_that_begin_with_zero_are_taken_for_those_of_another_life() {
    granted(reader_that_sleeps_for_days(&[
        // And they would be swept at once.
        ("version < old AND", "false AND"),
        ("VALUES (a->>'name', t) ON CONFLICT", "VALUES (a->>'name', 0) ON CONFLICT"),
        ("greatest(o.version + 1, t)", "o.version + 1"),
        ("greatest(l.version + 1, t)", "l.version + 1"),
    ]));
}

/// A claim waits for the row of the lock while a transaction refuses its owner. Returns whether it was granted all the same.
fn claim_that_is_given_up(place: &Place) -> bool {
    let (client, session, watcher) = (place.client(), place.session(), place.session());
    releases_once(place, &claim("report"));
    session.run("BEGIN; SELECT 1 FROM lock FOR NO KEY UPDATE").unwrap();
    let late = claim("report");
    let owner = late.owner.to_wire();
    let claiming = meanwhile(move || client.acquire(&late, SOON));
    blocks_another(&watcher, session.pid());
    session.run(&format!("INSERT INTO tombstone VALUES ('report', '{owner}', clock() + 60000000); COMMIT")).unwrap();
    matches!(end(claiming), Ok(Answer::Granted { .. }))
}

/// So that the lock has a row.
fn releases_once(place: &Place, claim: &Claim) {
    let client = place.client();
    take(&client, claim);
    releases(&client, claim);
}

#[test]
fn a_claim_that_was_given_up_while_it_waited_for_the_row_is_not_granted() {
    assert!(!claim_that_is_given_up(&Place::new()));
}

#[test]
fn a_claim_that_looks_for_its_tombstone_before_it_has_the_row_is_granted_to_nobody() {
    let declared = "token bigint; ahead int;\nBEGIN";
    let early = "token bigint; ahead int; given_up boolean := EXISTS (SELECT FROM leasehold.tombstone o \
                 WHERE o.name = a->>'name' AND o.owner = (a->>'owner')::uuid);\nBEGIN";
    let check = "EXISTS (SELECT FROM leasehold.tombstone o WHERE o.name = l.name AND o.owner = me)";
    assert!(claim_that_is_given_up(&Place::twin(&[(declared, early), (check, "given_up")])));
}
