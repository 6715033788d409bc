//! What a transaction that is fenced by a lock keeps out, and what goes on beside it.

use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::{Certainty, ReleaseRequest, Released, Renewed};

use crate::support::{
    BRIEF, Place, SHORT, SOON, claim, code, granted, is_busy, is_queued, is_told_of_a_fence, lasting, low, operator,
    permits, release_of, releases, take, wait_for_the_end_of, waiting,
};

const REFUSED: &str = "LH001";
/// The transaction has read before the fence what another one has changed since.
const LATE: &str = "LH002";
const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

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
fn a_fence_at_any_level_keeps_others_out_and_renewals_pass_below_serializable() {
    for level in LEVELS {
        let place = Place::new();
        let (client, user) = (place.client(), place.session());
        let held = take(&client, &lasting(BRIEF, claim("stock")));
        user.run(&format!("SET TRANSACTION ISOLATION LEVEL {level}")).unwrap();
        user.begin("stock", low(&held)).unwrap();
        if level != "SERIALIZABLE" {
            let renewed = client.renew(std::slice::from_ref(&held), SOON).unwrap();
            assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{level}: {renewed:?}");
        }
        wait_for_the_end_of(BRIEF);
        let answer = client.acquire(&claim("stock"), SOON);
        assert!(!matches!(answer, Ok(lock_core::Answer::Granted { .. })), "{level}: {answer:?}");
        user.run("COMMIT").unwrap();
        take(&client, &claim("stock"));
    }
}

/// After a `KILL QUERY`, MariaDB may have a hold without an identity.
#[test]
fn a_lease_without_an_identity_ends_with_its_ttl() {
    let place = Place::new();
    let client = place.client();
    let held = take(&client, &lasting(BRIEF, claim("stock")));
    place.session().run("DELETE FROM leasehold_identity WHERE name = 'stock'").unwrap();
    is_busy(client.acquire(&claim("stock"), SOON));
    wait_for_the_end_of(BRIEF);
    let next = take(&client, &claim("stock"));
    assert!(next.tokens.low() > held.tokens.high());
}

#[test]
fn a_lease_that_was_revoked_after_the_snapshot_of_a_transaction_fences_it_no_more() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    for level in LEVELS {
        let held = take(&client, &claim("stock"));
        user.run(&format!("SET TRANSACTION ISOLATION LEVEL {level}; START TRANSACTION")).unwrap();
        user.value::<i64>("SELECT COUNT(*) FROM leasehold_layout");
        let revoked = client.revoke(&held.name, held.tokens.low(), &operator(), SOON);
        assert_eq!(revoked, Ok(Revoked::Revoked));
        let refused = code(user.fence("stock", low(&held)));
        assert!([REFUSED, LATE].contains(&refused.as_str()), "{level}: {refused}");
        user.run("ROLLBACK").unwrap();
    }
}

/// So a transaction of any level may read first, though what it has read was not read under the lock.
#[test]
fn a_lease_that_was_renewed_after_the_snapshot_of_a_transaction_fences_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    for level in LEVELS {
        user.run(&format!("SET TRANSACTION ISOLATION LEVEL {level}; START TRANSACTION")).unwrap();
        user.value::<i64>("SELECT COUNT(*) FROM leasehold_layout");
        client.renew(std::slice::from_ref(&held), SOON).unwrap();
        user.fence("stock", low(&held)).unwrap();
        user.run("COMMIT").unwrap();
    }
}

#[test]
fn a_fence_without_a_transaction_is_refused() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    assert_eq!(code(user.fence("stock", low(&held))), "LH003");
    user.run("SET autocommit = 0").unwrap();
    user.fence("stock", low(&held))
        .unwrap_or_else(|error| panic!("without autocommit, each statement begins one: {error}"));
    is_told_of_a_fence(|| client.release(&release_of(&claim_of(&held)), SHORT));
    user.run("ROLLBACK").unwrap();
}

fn claim_of(lease: &lock_core::Lease) -> lock_core::Claim {
    lock_core::Claim { owner: lease.owner, ..claim(lease.name.as_str()) }
}

/// At stricter levels than READ COMMITTED, the place where the lease would be was locked: so the transaction is rolled back.
#[test]
fn a_refused_fence_leaves_nothing_in_the_way_of_others() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = claim("stock");
    let token = low(&take(&client, &held));
    for level in LEVELS {
        for (name, token) in [("stock", token - 1), ("stock", token + 1), ("none", token), ("a", 1), ("z", 1)] {
            user.run(&format!("SET TRANSACTION ISOLATION LEVEL {level}; START TRANSACTION")).unwrap();
            assert_eq!(code(user.fence(name, token)), REFUSED, "{level} {name} {token}");
            assert!(!user.is_in_transaction(), "{level} {name} {token}");
            for other in ["a", "m", "none", "z"].map(claim) {
                take(&client, &other);
                releases(&client, &other);
            }
        }
    }
    releases(&client, &held);
}

#[test]
fn with_a_prefix_the_name_in_the_database_has_it() {
    let place = Place::new();
    let (client, user) = (crate::support::client(&format!("{}?prefix=shop", place.url)), place.session());
    let held = take(&client, &claim("stock"));
    assert_eq!(code(user.begin("stock", low(&held))), REFUSED);
    user.run(&format!("START TRANSACTION; CALL leasehold_fence('shop:stock', {})", low(&held))).unwrap();
    is_told_of_a_fence(|| client.release(&release_of(&claim_of(&held)), SHORT));
}

#[test]
fn a_revocation_waits_for_an_open_fence() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = take(&client, &claim("stock"));
    user.begin("stock", low(&held)).unwrap();
    is_told_of_a_fence(|| client.revoke(&held.name, held.tokens.low(), &operator(), SHORT));
    is_busy(client.acquire(&claim("stock"), SOON));
    user.run("COMMIT").unwrap();
    assert_eq!(client.revoke(&held.name, held.tokens.low(), &operator(), SOON), Ok(Revoked::Revoked));
    take(&client, &claim("stock"));
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
    is_told_of_a_fence(|| client.release(&release_of(&fenced), SHORT));
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
        is_told_of_a_fence(|| client.release(&request, SHORT));
        is_busy(client.acquire(&claim(name), SOON));
        user.run("COMMIT").unwrap();
        assert_eq!(client.release(&request, SOON), Ok(Released::Released), "{name}");
    }
}

#[test]
fn the_token_of_a_lock_that_is_kept_was_released_or_lost_is_refused() {
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
    let token = low(&take(&client, &lasting(BRIEF, claim("stock"))));
    wait_for_the_end_of(BRIEF);
    assert_eq!(code(user.begin("stock", token)), REFUSED, "nobody has taken it over");
    assert_eq!(code(user.begin("never held", 1)), REFUSED);
    for arguments in ["'stock', NULL", "NULL, 1", "NULL, NULL", "'stock', 0", "'stock', -1", "'', 1"] {
        user.run("START TRANSACTION").unwrap();
        assert_eq!(code(user.run(&format!("CALL leasehold_fence({arguments})"))), REFUSED, "{arguments}");
    }
}
