//! What operators do to a cluster: they compact it, run out of its quota, and restore it.

use std::time::Duration;

use lock_core::{BackendError, BlockingBackend, Certainty, Effect, ErrorKind, Released};
use test_support::bounds::wait_for;
use test_support::{EtcdCluster, EtcdServer, temp_dir};

use crate::VERSION;
use crate::support::{Client, SOON, claim, count, start, waiting};

#[test]
fn waiters_are_woken_after_a_compaction() {
    let server = start();
    let [one, two] = [(); 2].map(|()| Client::new(&server.url()));
    let (first, next) = (claim("compacted"), waiting("compacted"));
    one.take(&first);
    two.queue(&next, 1);
    (0..100).for_each(|_| {
        one.releases(&{
            let other = claim("other");
            one.take(&other);
            other
        })
    });
    compact(&server);
    server.run(&["defrag"]);
    two.queue(&next, 1);
    one.releases(&first);
    two.wait_for_grant(&next);
}

#[test]
fn without_room_nothing_is_granted_and_what_is_held_is_kept() {
    let cluster = EtcdCluster::start_with(VERSION, &["--quota-backend-bytes", "1000000"]);
    let client = Client::new(&cluster.url());
    let [held, given_back] = ["held", "given back"].map(claim);
    let (lease, _) = (client.take(&held), client.take(&given_back));
    let other = Client::new(&cluster.url());
    let next = waiting("given back");
    other.queue(&next, 1);
    fill(&cluster);

    let late = claim("late");
    has_remedy(&wait_for("a refusal", || client.acquire(&late).err()));
    // These servers refuse even transactions that only read or delete, once the file is as large as the quota.
    let renewed = or_remedy(client.renew(&lease));
    assert!(renewed.is_none_or(|lasts| lasts > Some(Duration::from_secs(50))), "{renewed:?}");
    let released = or_remedy(client.try_release(&given_back));
    assert!(released.is_none_or(|released| released == Released::Released), "{released:?}");
    // It cannot write when it was granted.
    or_remedy(other.acquire(&next));
    // This writes that the owner has given up.
    has_remedy(&client.store.release(&late.release(Certainty::Unknown), SOON).unwrap_err());
    assert_eq!(count(cluster.server(0), "leasehold/late/"), 0);

    make_room(&cluster);
    wait_for("a renewal", || client.renew(&lease).is_ok_and(|lasts| lasts > Some(Duration::from_secs(50))));
    client.releases(&held);
    client.release(&given_back, Certainty::Answered);
    wait_for("a grant", || other.try_take(&next));
    assert_eq!(client.release(&late, Certainty::Unknown), Released::NotHeld);
    client.take(&claim("late"));
}

/// What was answered, unless it was refused for want of room.
#[track_caller]
fn or_remedy<T>(answer: Result<T, BackendError>) -> Option<T> {
    answer.inspect_err(|error| has_remedy(error)).ok()
}

/// Checks that an error says what to do, and that something may have been written.
#[track_caller]
fn has_remedy(error: &BackendError) {
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error}");
    assert!(error.to_string().contains("etcdctl alarm disarm"), "{error}");
}

/// Writes until the servers take no more.
fn fill(cluster: &EtcdCluster) {
    let value = "x".repeat(100_000);
    wait_for("the end of all room", || {
        let mut put = cluster.server(0).etcdctl(&["put", "filler", &value]);
        !put.output().unwrap().status.success()
    });
    assert!(cluster.server(0).run(&["alarm", "list"]).contains("NOSPACE"));
}

/// Has a server forget the past.
fn compact(server: &EtcdServer) {
    let state = server.run(&["get", "--write-out", "fields", "none"]);
    let revision = state.lines().find_map(|line| line.strip_prefix("\"Revision\" : ")).unwrap();
    server.run(&["compact", "--physical", revision]);
}

fn make_room(cluster: &EtcdCluster) {
    let server = cluster.server(0);
    server.run(&["del", "filler"]);
    compact(server);
    (0..3).for_each(|number| drop(cluster.server(number).run(&["defrag"])));
    server.run(&["alarm", "disarm"]);
}

#[test]
fn after_a_restore_holders_of_before_are_told_and_tokens_rise_above_a_base() {
    let mut cluster = EtcdCluster::start(VERSION);
    let client = Client::new(&cluster.url());
    let [before, after] = ["before", "after"].map(claim);
    let kept = client.take(&before);
    let folder = temp_dir();
    let snapshot = folder.path().join("snapshot");
    cluster.server(0).run(&["snapshot", "save", &snapshot.to_string_lossy()]);
    for _ in 0..20 {
        take_and_release(&client);
    }
    let lost = client.take(&after);

    cluster.restart_from(&snapshot);
    // Its key is there again, with the lease that it had.
    let answer = wait_for("an answer", || client.renew(&kept));
    assert!(answer > Some(Duration::from_secs(50)), "{answer:?}");
    assert_eq!(wait_for("an answer", || client.renew(&lost)), None, "its key is gone");
    let low = wait_for("a grant", || Client::new(&cluster.url()).try_take(&claim("after")));
    assert!(low.tokens.low() <= lost.tokens.high(), "the revisions of before are counted again");
    let base = lost.tokens.high().get() + 1;
    cluster.server(0).run(&["put", "leasehold/leasehold-base", &base.to_string()]);
    let later = Client::new(&cluster.url()).take(&claim("later"));
    assert!(later.tokens.low() > lost.tokens.high());
}

fn take_and_release(client: &Client) {
    let claim = claim("other");
    client.take(&claim);
    client.releases(&claim);
}
