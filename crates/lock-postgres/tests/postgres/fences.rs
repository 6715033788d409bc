//! What a transaction that is fenced by a lock keeps out, and what goes on beside it.

use std::thread;
use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::{Certainty, Claim, ErrorKind, ReleaseRequest, Released, Renewed, Width};

use crate::support::{
    BRIEF, Place, SHORT, SOON, blocks_another, claim, code, end, granted, is_busy, is_queued, lasting, low, meanwhile,
    operator, permits, release_of, releases, take, wait_until_blocked, waiting,
};

const REFUSED: &str = "LH001";

fn wait_for_the_end_of(ttl: Duration) {
    thread::sleep(ttl + Duration::from_millis(100));
}

#[test]
fn renewals_pass_an_open_fence_and_a_takeover_waits_for_its_commit() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &lasting(BRIEF, claim("stock")));
    user.begin("stock", low(&held)).unwrap();
    let renewed = client.renew(std::slice::from_ref(&held), SOON).unwrap();
    assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{renewed:?}");
    wait_for_the_end_of(BRIEF);
    is_busy(client.acquire(&claim("stock"), SOON));
    user.run("COMMIT").unwrap();
    let next = take(&client, &claim("stock"));
    assert!(next.tokens.low() > held.tokens.high());
    assert_eq!(code(user.begin("stock", low(&held))), REFUSED);
    user.begin("stock", low(&next)).unwrap();
}

#[test]
fn a_fence_that_locks_no_row_keeps_nobody_out() {
    let place = Place::twin(&[(" FOR KEY SHARE;", ";")]);
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &lasting(BRIEF, claim("stock")));
    user.begin("stock", low(&held)).unwrap();
    wait_for_the_end_of(BRIEF);
    take(&client, &claim("stock"));
    user.run("COMMIT").unwrap();
}

/// Such a commit keeps the row of the lock from everybody else while it waits for the transaction of a user.
#[test]
fn a_commit_that_does_not_look_for_fences_stops_the_queue() {
    let place = Place::twin(&[("fenced := fenced || x.owner", "NULL")]);
    let (client, user, watcher) = (place.client(), place.session(), place.session());
    let held = take(&client, &lasting(BRIEF, claim("stock")));
    user.begin("stock", low(&held)).unwrap();
    wait_for_the_end_of(BRIEF);
    let taking = meanwhile({
        let client = place.client();
        move || client.acquire(&claim("stock"), SOON)
    });
    blocks_another(&watcher, user.pid());
    let error = client.acquire(&waiting("stock"), SHORT).unwrap_err();
    assert!([ErrorKind::Unavailable, ErrorKind::Timeout].contains(&error.kind()), "{error:?}");
    user.run("COMMIT").unwrap();
    granted(end(taking));
}

#[test]
fn a_lease_that_was_revoked_after_the_snapshot_of_a_transaction_fences_it_no_more() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let held = take(&client, &claim("stock"));
        user.run(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        user.value::<i64>("SELECT count(*) FROM layout");
        let revoked = client.revoke(&held.name, held.tokens.low(), &operator(), SOON);
        assert_eq!(revoked, Ok(Revoked::Revoked));
        let refused = code(user.fence("stock", low(&held)));
        assert!([REFUSED, "40001"].contains(&refused.as_str()), "{level}: {refused}");
        user.run("ROLLBACK").unwrap();
    }
}

/// So a transaction of any level may read first, though what it has read was not read under the lock.
#[test]
fn a_lease_that_was_renewed_after_the_snapshot_of_a_transaction_fences_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        user.run(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        user.value::<i64>("SELECT count(*) FROM layout");
        client.renew(std::slice::from_ref(&held), SOON).unwrap();
        user.fence("stock", low(&held)).unwrap();
        user.run("COMMIT").unwrap();
    }
}

#[test]
fn a_revocation_waits_for_an_open_fence() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    user.begin("stock", low(&held)).unwrap();
    let error = client.revoke(&held.name, held.tokens.low(), &operator(), SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    is_busy(client.acquire(&claim("stock"), SOON));
    user.run("COMMIT").unwrap();
    assert_eq!(client.revoke(&held.name, held.tokens.low(), &operator(), SOON), Ok(Revoked::Revoked));
    take(&client, &claim("stock"));
}

fn several_turns() -> Claim {
    Claim { width: Width::for_waiters(4), ..claim("stock") }
}

#[test]
fn a_later_turn_under_one_lease_waits_for_the_earlier_one_which_is_refused_afterwards() {
    let place = Place::new();
    let (first, second, watcher) = (place.session(), place.session(), place.session());
    let token = low(&take(&place.client(), &several_turns()));
    first.begin("stock", token).unwrap();
    let pid = second.pid();
    let later = meanwhile(move || second.begin("stock", token + 1).map(|()| second));
    wait_until_blocked(&watcher, pid);
    first.run("COMMIT").unwrap();
    let second = end(later).unwrap();
    second.run("COMMIT").unwrap();
    assert_eq!(code(first.begin("stock", token)), REFUSED);
    first.begin("stock", token + 1).unwrap();
}

#[test]
fn a_turn_whose_transaction_was_rolled_back_refuses_nobody() {
    let place = Place::new();
    let (first, second) = (place.session(), place.session());
    let token = low(&take(&place.client(), &several_turns()));
    second.begin("stock", token + 1).unwrap();
    second.run("ROLLBACK").unwrap();
    first.begin("stock", token).unwrap();
}

#[test]
fn a_fence_without_turns_lets_two_turns_of_one_lease_work_at_once() {
    let raised = "SELECT o.token INTO raised FROM leasehold.turn o WHERE o.name = h.name AND o.low = h.low;";
    let place = Place::twin(&[(raised, "RETURN;")]);
    let (first, second) = (place.session(), place.session());
    let token = low(&take(&place.client(), &several_turns()));
    first.begin("stock", token).unwrap();
    second.begin("stock", token + 1).unwrap();
    first.run("COMMIT").unwrap();
    first.begin("stock", token).unwrap();
}

/// Three transactions of one turn begin while one of the turn before is open. Returns the answer to each of them.
fn three_of_a_later_turn(place: &Place) -> Vec<Result<(), tokio_postgres::Error>> {
    let (earlier, watcher) = (place.session(), place.session());
    let token = low(&take(&place.client(), &several_turns()));
    for _ in 0..2 {
        earlier.run("COMMIT").unwrap();
        earlier.begin("stock", token).unwrap();
    }
    let begin = |_| {
        let session = place.session();
        let pid = session.pid();
        let begun = meanwhile(move || {
            session.begin("stock", token + 1)?;
            session.run("COMMIT")
        });
        wait_until_blocked(&watcher, pid);
        begun
    };
    let several: Vec<_> = (0..3).map(begin).collect();
    earlier.run("COMMIT").unwrap();
    several.into_iter().map(end).collect()
}

#[test]
fn transactions_of_one_turn_are_no_victims_of_a_deadlock_and_go_on_side_by_side() {
    let place = Place::new();
    for begun in three_of_a_later_turn(&place) {
        begun.unwrap();
    }
    let token = low(&take(&place.client(), &Claim { width: Width::for_waiters(4), ..claim("shelf") }));
    let [first, one, two] = [place.session(), place.session(), place.session()];
    first.begin("shelf", token).unwrap();
    first.run("COMMIT").unwrap();
    one.begin("shelf", token).unwrap();
    two.begin("shelf", token).unwrap();
}

#[test]
fn a_fence_that_locks_the_turn_before_it_raises_it_ends_in_a_deadlock() {
    let read = "WHERE o.name = h.name AND o.low = h.low;\n    IF raised = fence.token THEN";
    let locked = read.replace("o.low = h.low;", "o.low = h.low FOR SHARE;");
    let begun = three_of_a_later_turn(&Place::twin(&[(read, &locked)]));
    assert!(begun.into_iter().any(|begun| begun.is_err_and(|error| error.code().unwrap().code() == "40P01")));
}

#[test]
fn waiters_come_stay_and_go_while_a_fence_is_open() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for ttl in [Duration::from_secs(60), BRIEF] {
        let held = lasting(ttl, claim("stock"));
        user.begin("stock", low(&take(&client, &held))).unwrap();
        // The second time, nobody renews the lease, and the head of the queue would be granted the lock but for the fence.
        if ttl == BRIEF {
            wait_for_the_end_of(ttl);
        }
        let [first, second] = [waiting("stock"), waiting("stock")];
        is_queued(client.acquire(&first, SOON), 1);
        is_queued(client.acquire(&second, SOON), 2);
        is_queued(client.acquire(&first, SOON), 1);
        assert_eq!(client.release(&release_of(&first), SOON), Ok(Released::Left));
        is_queued(client.acquire(&second, SOON), 1);
        user.run("COMMIT").unwrap();
        client.release(&release_of(&held), SOON).unwrap();
        granted(client.acquire(&second, SOON));
        releases(&client, &second);
    }
}

#[test]
fn other_permits_come_and_go_while_one_is_fenced() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let fenced = permits("gpu", 1, 2);
    user.begin("gpu", low(&take(&client, &fenced))).unwrap();
    for _ in 0..3 {
        let other = permits("gpu", 1, 2);
        assert_eq!(take(&client, &other).slots.get(), [1]);
        is_busy(client.acquire(&permits("gpu", 1, 2), SOON));
        releases(&client, &other);
    }
    let error = client.release(&release_of(&fenced), SHORT).unwrap_err();
    assert!(error.to_string().contains("still open"), "{error}");
    user.run("COMMIT").unwrap();
    releases(&client, &fenced);
}

#[test]
fn a_release_before_the_commit_says_so_and_succeeds_after_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for (certainty, keep) in
        [(Certainty::Answered, None), (Certainty::Unknown, None), (Certainty::Answered, Some(Duration::from_secs(1)))]
    {
        let held = claim(&format!("stock {certainty:?} {keep:?}"));
        let name = held.name.as_str();
        user.begin(name, low(&take(&client, &held))).unwrap();
        let request = ReleaseRequest { keep, ..held.release(certainty) };
        let error = client.release(&request, SHORT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error:?}");
        assert!(error.to_string().contains("transaction"), "{name}: {error}");
        is_busy(client.acquire(&claim(name), SOON));
        user.run("COMMIT").unwrap();
        assert_eq!(client.release(&request, SOON), Ok(Released::Released), "{name}");
    }
}

#[test]
fn the_token_of_a_lock_that_is_kept_or_was_released_is_refused() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for keep in [None, Some(Duration::from_secs(60))] {
        let held = claim(&format!("job {keep:?}"));
        let name = held.name.as_str();
        let token = low(&take(&client, &held));
        user.begin(name, token).unwrap();
        user.run("COMMIT").unwrap();
        client.release(&ReleaseRequest { keep, ..release_of(&held) }, SOON).unwrap();
        assert_eq!(code(user.begin(name, token)), REFUSED, "{name}");
    }
    assert_eq!(code(user.begin("never held", 1)), REFUSED);
}

/// A takeover of a lock that its owner has left kept, and that ends, meets no fence.
#[test]
fn a_lost_lease_may_be_fenced_by_nobody_even_if_it_was_taken_by_nobody() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let token = low(&take(&client, &lasting(BRIEF, claim("stock"))));
    wait_for_the_end_of(BRIEF);
    assert_eq!(code(user.begin("stock", token)), REFUSED);
}
