//! Requests to a node that leave together: one script serves several locks, and each gets the answer that it would get alone.

use lock_core::node::{Ask, AsyncQuorumNode, Told};
use lock_core::{BackendError, Certainty, Claim, Effect, ErrorKind, FencingToken, Holder, Released, Width};
use lock_redis::RedisConfig;
use lock_redis::node::nonblocking::RedisNode;
use test_support::{RedisOptions, RedisVersion};
use tokio::runtime::Builder;

use super::{
    ADDRESS, AT_ONCE, EPOCH, OTHER_EPOCH, Voter, acquire, ask_together, granted, on_threads, release, tombstone,
};
use crate::faults::evaluations;
use crate::support::{SOON, claim, owner};

/// How many are one script at most.
const TOGETHER: usize = 32;

/// Asks all of these at once. Returns the answers, and how many scripts ran for them.
fn ask(voter: &Voter, asks: &[Ask]) -> (Vec<Result<Told, BackendError>>, u64) {
    let node = RedisNode::new(&RedisConfig::from_url(&voter.server.url()).unwrap(), ADDRESS).unwrap();
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        node.ask(&Ask::Look, SOON).await.unwrap();
        let before = evaluations(&voter.server);
        let told = ask_together(&node, asks).await;
        (told, evaluations(&voter.server) - before - AT_ONCE as u64)
    })
}

fn claims(count: usize) -> Vec<Claim> {
    (0..count).map(|lock| claim(&format!("lock {lock}"))).collect()
}

#[test]
fn claims_for_free_locks_are_one_script_and_get_the_tokens_they_wish() {
    let voter = Voter::start(on_threads);
    let wish = voter.clock() + 500_000;
    let asks = claims(TOGETHER).iter().zip(wish..).map(|(claim, wish)| acquire(claim, wish, EPOCH)).collect::<Vec<_>>();
    let (told, scripts) = ask(&voter, &asks);
    let tokens: Vec<_> = told.into_iter().map(|told| granted(told).0).collect();
    assert_eq!((tokens, scripts), ((wish..).take(TOGETHER).collect(), 1));
    assert_eq!(voter.counter(), wish + TOGETHER as u64 - 1);
    assert!((0..TOGETHER).all(|lock| (20_000..=30_000).contains(&voter.left(&format!("lock {lock}")))));
}

#[test]
fn what_is_unusual_has_its_own_answer_and_the_others_theirs() {
    let voter = Voter::start(on_threads);
    let (held, theirs) = voter.take("lock 1");
    let mut claims = claims(10);
    // Held by another, held already, given up, of another type, wide, one with a floor.
    claims[1].owner = owner(0x11);
    let again = granted(voter.acquire(&claims[2], 1)).0;
    voter.release(&claims[3], Certainty::Unknown);
    assert!(voter.value(&tombstone(&claims[3])).is_some());
    voter.server.command::<()>(&["HSET", "lock 4", "redisson", "1"]);
    claims[5].width = Width::for_waiters(3);
    claims[6].terms.ttl = "90s".parse().unwrap();
    let (wish, floor) = (voter.clock() + 500_000, voter.clock() + 60_000_000);
    claims[8].floor = FencingToken::new(floor).ok();
    // Wishes far enough apart for the wide one. The seventh is for another epoch.
    let epoch = |lock| if lock == 7 { OTHER_EPOCH } else { EPOCH };
    let asks = claims.iter().enumerate().map(|(lock, claim)| acquire(claim, wish + 10 * lock as u64, epoch(lock)));
    let (mut told, scripts) = ask(&voter, &asks.collect::<Vec<_>>());
    assert_eq!(scripts, 2, "one for each epoch");

    let holder = Holder::Leasehold { tokens: theirs.tokens, note: held.note };
    assert!(matches!(&told[1], Ok(Told::Held { holder: told, .. }) if *told == holder), "{told:?}");
    assert_eq!(told[3].as_ref().unwrap_err().kind(), ErrorKind::Protocol, "{told:?}");
    assert_eq!(told[4].as_ref().unwrap_err().kind(), ErrorKind::OtherKind, "{told:?}");
    assert_eq!(told[7], Ok(Told::Abstains));
    let mut token = |lock: usize| granted(std::mem::replace(&mut told[lock], Ok(Told::Abstains))).0;
    assert_eq!(token(2), again);
    assert_eq!([0, 5, 6].map(&mut token), [wish, wish + 50, wish + 60]);
    assert_eq!([8, 9].map(&mut token), [floor + 1, floor + 2], "the last wish is below what was drawn");
    assert_eq!((voter.counter(), voter.view().longest), (floor + 2, claims[6].terms.ttl.get()));
    assert!(voter.value("lock 5").unwrap().contains(&format!(":{}:{}:", wish + 48, wish + 50)));
    assert_eq!((voter.value("lock 3"), voter.value("lock 7")), (None, None));
}

#[test]
fn releases_are_one_script_and_each_has_its_own_answer() {
    let voter = Voter::start(on_threads);
    let claims = claims(TOGETHER);
    let releases = || claims.iter().map(|claim| release(claim, Certainty::Answered)).collect::<Vec<_>>();
    let released = |told: Vec<Result<Told, BackendError>>| told.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    for missing in [None, Some(7)] {
        for claim in &claims {
            granted(voter.acquire(claim, 1));
        }
        // Somebody wants to be notified of one lock.
        voter.server.command::<()>(&["RPUSH", "leasehold:{lock 9}:i", "leasehold:inbox:0"]);
        let expected = |lock| if missing == Some(lock) { Released::NotHeld } else { Released::Released };
        if let Some(lock) = missing {
            voter.server.command::<()>(&["SET", &format!("lock {lock}"), "foreign"]);
        }
        let (told, scripts) = ask(&voter, &releases());
        assert_eq!((released(told), scripts), ((0..TOGETHER).map(|lock| Told::Released(expected(lock))).collect(), 1));
        assert!((0..TOGETHER).all(|lock| voter.value(&format!("lock {lock}")).is_some() == (missing == Some(lock))));
        assert_eq!(voter.server.command::<u8>(&["EXISTS", "leasehold:{lock 9}:i"]), 0);
    }
}

#[test]
fn what_a_full_node_cannot_write_concerns_no_other_claim() {
    for version in [RedisVersion::Installed, RedisVersion::Oldest] {
        let options = RedisOptions::default().version(version).arguments(&["--maxmemory-policy", "noeviction"]);
        let voter = Voter::start_with(on_threads, options);
        let held = voter.take("lock 1").1;
        let mut claims = claims(4);
        let token = granted(voter.acquire(&claims[2], 1)).0;
        voter.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        // What is not written for the first of them is written for the other.
        claims[0].terms.ttl = "90s".parse().unwrap();
        claims[2].terms.ttl = claims[0].terms.ttl;
        let (mut told, scripts) = ask(&voter, &claims.iter().map(|claim| acquire(claim, 1, EPOCH)).collect::<Vec<_>>());
        assert_eq!(scripts, 1);
        for lock in [0, 3] {
            let error = told[lock].as_ref().unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
            assert_eq!(voter.value(&format!("lock {lock}")), None);
        }
        let Ok(Told::Held { holder: Holder::Leasehold { tokens, .. }, .. }) = &told[1] else { panic!("{told:?}") };
        assert_eq!(*tokens, held.tokens);
        assert_eq!(granted(told.swap_remove(2)).0, token);
        assert_eq!(voter.view().longest, claims[2].terms.ttl.get());
    }
}
