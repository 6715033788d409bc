//! Who excludes whom, and what is stored.

use std::time::Duration;

use lock_core::{
    Answer, Certainty, Effect, ErrorKind, Fenced, Holder, Lease, Mode, Released, Renewed, TokenRange, Ttl, Width,
};
use test_support::RedisServer;

use crate::support::{SOON, both, claim, granted, is_busy, owner, release_of, take, without_time};

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

#[test]
fn a_lease_is_one_string_with_an_expiry() {
    let server = RedisServer::start();
    for (facade, client) in both(&format!("{}/?prefix=shop", server.url())) {
        let mut claim = claim("invoice:42");
        (claim.owner, claim.width) = (owner(0xab), Width::for_waiters(3));
        let lease = granted(client.acquire(&claim, SOON));
        let value: String = server.command(&["GET", "shop:invoice:42"]);
        let expected = format!("lh1:{}:{}:{}:1@here testing", "ab".repeat(16), lease.tokens.low(), lease.tokens.high());
        assert_eq!(without_time(&value), expected, "{facade}");
        assert_eq!(lease.tokens.high().get() - lease.tokens.low().get(), 2);
        let left: u64 = server.command(&["PTTL", "shop:invoice:42"]);
        assert!((20_000..=30_000).contains(&left), "{left}");
        assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::Released);
        assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::NotHeld);
        assert!(server.keys().is_empty(), "{:?}", server.keys());
    }
}

#[test]
fn asking_again_gives_the_same_tokens_and_rearms_the_ttl() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (claim, lease) = take(&client, facade);
        server.command::<()>(&["PEXPIRE", facade, "1000"]);
        assert_eq!(granted(client.acquire(&claim, SOON)).tokens, lease.tokens);
        assert!(server.command::<u64>(&["PTTL", facade]) > 20_000);
    }
}

#[test]
fn a_plain_client_and_we_exclude_each_other() {
    let server = RedisServer::start();
    for (_, client) in both(&server.url()) {
        let set = ["SET", "report", "c2VjcmV0", "NX", "PX", "60000"];
        let compare_and_delete = ["EVAL", COMPARE_AND_DELETE, "1", "report", "c2VjcmV0"];
        let (held, lease) = take(&client, "report");
        assert_eq!(server.command::<Option<String>>(&set), None);
        assert_eq!(server.command::<u8>(&compare_and_delete), 0);
        assert_eq!(client.fence(&lease, SOON).unwrap(), Fenced::Acknowledged);
        client.release(&release_of(&held, Certainty::Answered), SOON).unwrap();

        assert_eq!(server.command::<Option<String>>(&set).as_deref(), Some("OK"));
        let answer = client.acquire(&claim("report"), SOON).unwrap();
        let Answer::Busy { remaining: Some(left), holder: Holder::Foreign, .. } = answer else { panic!("{answer:?}") };
        assert!(left > Duration::from_secs(40) && left <= Duration::from_secs(60), "{left:?}");
        assert_eq!(client.release(&release_of(&held, Certainty::Answered), SOON).unwrap(), Released::NotHeld);
        server.command::<()>(&["PERSIST", "report"]);
        let answer = client.acquire(&claim("report"), SOON).unwrap();
        assert_eq!(answer, Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None });
        assert_eq!(server.command::<u8>(&compare_and_delete), 1);
        let (again, _) = take(&client, "report");
        client.release(&release_of(&again, Certainty::Answered), SOON).unwrap();
    }
}

#[test]
fn a_key_of_another_type_is_left_alone() {
    let server = RedisServer::start();
    server.command::<()>(&["HSET", "job", "redisson", "1"]);
    let before: Vec<u8> = server.command(&["DUMP", "job"]);
    for (_, client) in both(&server.url()) {
        let claim = claim("job");
        let error = client.acquire(&claim, SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
        let tokens = TokenRange::above(1, Width::ONE).unwrap();
        let lease = claim.lease(tokens);
        assert_eq!(client.renew(std::slice::from_ref(&lease), SOON).unwrap(), [Renewed::NotHeld]);
        assert_eq!(client.fence(&lease, SOON).unwrap(), Fenced::NotHeld);
        assert_eq!(client.release(&release_of(&claim, Certainty::Unknown), SOON).unwrap(), Released::NotHeld);
    }
    assert_eq!(server.command::<Vec<u8>>(&["DUMP", "job"]), before);
}

#[test]
fn renewals_go_in_batches_and_create_nothing() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let name = |i: usize| format!("{facade}:{i}");
        let mut leases: Vec<Lease> = (0..250).map(|i| take(&client, &name(i)).1).collect();
        server.command::<()>(&["DEL", &name(7)]);
        server.command::<()>(&["SET", &name(120), "somebody else"]);
        leases[249].tokens = TokenRange::above(leases[249].tokens.high().get(), Width::ONE).unwrap();
        for lease in &mut leases {
            lease.terms.ttl = Ttl::new(Duration::from_secs(90)).unwrap();
        }
        let answers = client.renew(&leases, SOON).unwrap();
        let lost: Vec<usize> = (0..250).filter(|&i| answers[i] == Renewed::NotHeld).collect();
        assert_eq!(lost, [7, 120, 249], "{facade}");
        assert_eq!(answers[0], Renewed::Renewed { valid_for: Duration::from_secs(90), wanted: false });
        assert!(server.command::<u64>(&["PTTL", &name(0)]) > 60_000);
        assert!(server.command::<u64>(&["PTTL", &name(249)]) <= 30_000);
        assert_eq!(server.command::<u8>(&["EXISTS", &name(7)]), 0);
        assert_eq!(client.renew(&[], SOON).unwrap(), []);
    }
}

/// Whether a script renews exclusive leases alone, or also one that shares its lock; and whatever was lost between them.
#[test]
fn each_lease_is_renewed_for_its_own_ttl() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        for mode in [Mode::Exclusive, Mode::Shared] {
            let seconds = [50, 50, 70, 50, 90, 90];
            let mut leases: Vec<Lease> =
                (0..6).map(|i| granted(client.acquire(&claim(&format!("{facade}:{mode:?}:{i}")), SOON))).collect();
            let mut last = claim(&format!("{facade}:{mode:?}:last"));
            last.terms.mode = mode;
            leases.push(granted(client.acquire(&last, SOON)));
            for (lease, seconds) in leases.iter_mut().zip(seconds.into_iter().chain([60])) {
                lease.terms.ttl = Ttl::new(Duration::from_secs(seconds)).unwrap();
            }
            for lost in [1, 2] {
                server.command::<()>(&["DEL", leases[lost].name.as_str()]);
            }
            let renewed = client.renew(&leases, SOON).unwrap();
            let left = |lease: &Lease| server.command::<i64>(&["PTTL", lease.name.as_str()]);
            for (lease, renewed) in leases.iter().zip(renewed) {
                let ttl = lease.terms.ttl.get();
                let Renewed::Renewed { valid_for, .. } = renewed else {
                    assert_eq!((renewed, left(lease)), (Renewed::NotHeld, -2), "{}", lease.name);
                    continue;
                };
                let left = Duration::from_millis(left(lease).try_into().unwrap());
                let about = ttl.saturating_sub(Duration::from_secs(9))..=ttl;
                assert!(valid_for == ttl && about.contains(&left), "{}: {left:?}", lease.name);
            }
        }
    }
}

#[test]
fn a_fence_knows_the_stored_grant_from_others() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (_, first) = take(&client, facade);
        assert_eq!(client.fence(&first, SOON).unwrap(), Fenced::Acknowledged);
        is_busy(client.acquire(&claim(facade), SOON));
        server.command::<()>(&["DEL", facade]);
        assert_eq!(client.fence(&first, SOON).unwrap(), Fenced::NotHeld);
        let (_, second) = take(&client, facade);
        assert_eq!(client.fence(&first, SOON).unwrap(), Fenced::Higher(second.tokens.low()));
        assert_eq!(client.fence(&second, SOON).unwrap(), Fenced::Acknowledged);
    }
}
