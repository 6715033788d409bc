//! Requests of one verb for different locks, sent as one command: each gets the answer that it would get alone.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_core::{
    Answer, AsyncBackend, BackendError, Certainty, Claim, Effect, ErrorKind, FencingToken, Note, Queueing, Released,
    Terms, Ttl, Width,
};
use test_support::{AfterDrop, Fault, Proxy, RedisOptions, RedisServer, RedisVersion};
use tokio::task::JoinSet;

use crate::crowd::{Ask, Crowd, Said, acquired, released};
use crate::faults::{evaluations, exists};
use crate::support::{SOON, claim, granted, is_busy, release_of, without_time};

/// How many requests are one command at most.
const TOGETHER: usize = 32;

fn claims(count: usize) -> Vec<Claim> {
    (0..count).map(|lock| claim(&format!("lock {lock}"))).collect()
}

#[track_caller]
fn all_released(answers: Vec<Result<Released, BackendError>>) {
    answers.into_iter().for_each(|answer| assert_eq!(answer.unwrap(), Released::Released));
}

fn failed<T: fmt::Debug>(answer: &Result<T, BackendError>) -> (ErrorKind, Effect) {
    let error = answer.as_ref().unwrap_err();
    (error.kind(), error.effect())
}

/// Runs something, and says how many scripts the server ran, without the one that was sent alone.
fn scripts<T>(server: &RedisServer, run: impl FnOnce() -> T) -> (u64, T) {
    let before = evaluations(server);
    let outcome = run();
    (evaluations(server) - before - 1, outcome)
}

#[test]
fn a_run_is_one_command_and_each_lock_has_its_own_lease() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let mut claims = claims(2 * TOGETHER);
    let before = crowd.take(&[claim("before")])[0].tokens.high();
    let far = FencingToken::new(before.get() + 1_000_000).unwrap();
    claims[1].width = Width::for_waiters(5);
    claims[2].floor = Some(far);
    claims[3].terms = Terms::exclusive(Ttl::new(Duration::from_secs(3)).unwrap());
    claims[4].note = Note::new("there", 2, "another reason").unwrap();
    let (ran, leases) = scripts(&server, || crowd.take(&claims));
    assert_eq!(ran, 2, "so many commands for {} claims", claims.len());
    for (claim, lease) in claims.iter().zip(&leases) {
        assert_eq!((&lease.name, lease.owner), (&claim.name, claim.owner));
        let (low, high) = (lease.tokens.low(), lease.tokens.high());
        assert_eq!(high.get() - low.get() + 1, claim.width.get(), "{}", claim.name);
        assert!(low > claim.floor.unwrap_or(before), "{}", claim.name);
        let stored: String = server.command(&["GET", claim.name.as_str()]);
        assert_eq!(
            without_time(&stored),
            format!("lh1:{}:{low}:{high}:{}", claim.owner.to_wire(), claim.note.to_wire())
        );
        let (left, ttl): (u64, _) = (server.command(&["PTTL", claim.name.as_str()]), claim.terms.ttl.as_millis());
        assert!(left <= ttl && left + 2_000 > ttl, "{}: {left} of {ttl} ms", claim.name);
    }
    let mut ranges: Vec<_> = leases.iter().map(|lease| (lease.tokens.low(), lease.tokens.high())).collect();
    ranges.sort();
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "two leases have the same token: {ranges:?}");
    let counter: u64 = server.command(&["GET", "leasehold:counter"]);
    assert_eq!(counter, ranges.last().unwrap().1.get());
    let (ran, answers) = scripts(&server, || crowd.release(&claims));
    all_released(answers);
    assert_eq!(ran, 2, "so many commands for {} releases", claims.len());
    assert!(claims.iter().all(|claim| !exists(&server, claim.name.as_str())));
}

#[test]
fn what_is_unusual_has_its_own_answer_and_the_others_theirs() {
    for version in [RedisVersion::Installed, RedisVersion::Oldest] {
        unusual_ones_among_others(&RedisServer::start_with(RedisOptions::default().version(version)));
    }
}

fn unusual_ones_among_others(server: &RedisServer) {
    let (crowd, rival) = (Crowd::new(&server.url()), Crowd::new(&server.url()));
    let mut claims = claims(12);
    let held = claim("lock 1");
    rival.take(&[held.clone(), claim("lock 2"), claim("lock 9")]);
    claims[2].queueing = Queueing::Wanted;
    server.command::<()>(&["LPUSH", "lock 3", "something else"]);
    all_or_nothing(&rival.ask(vec![Ask::Release(release_of(&claims[4], Certainty::Unknown))]));
    let again = crowd.take(&claims[5..6])[0].tokens;
    server.command::<()>(&["SET", "lock 6", "c2VjcmV0", "PX", "60000"]);
    // A free lock with a waiter goes to that waiter.
    rival.take(&[claim("lock 7")]);
    let next = Claim { queueing: Queueing::Wanted, ..claim("lock 7") };
    assert!(matches!(rival.acquire(std::slice::from_ref(&next))[0], Ok(Answer::Queued { .. })));
    server.command::<()>(&["DEL", "lock 7"]);
    // Another program overwrote one of our keys.
    claims[9].queueing = Queueing::Wanted;
    server.command::<()>(&["SET", "leasehold:{lock 9}:w", "damaged"]);

    let (ran, answers) = scripts(server, || crowd.acquire(&claims));
    assert_eq!(ran, 1);
    for (lock, answer) in answers.into_iter().enumerate() {
        match lock {
            1 | 6 | 7 => is_busy(answer),
            2 => assert!(matches!(answer, Ok(Answer::Queued { position: 1, .. })), "{answer:?}"),
            3 => assert_eq!(failed(&answer), (ErrorKind::OtherKind, Effect::None)),
            4 => {
                assert_eq!(failed(&answer), (ErrorKind::Protocol, Effect::None));
                assert!(answer.unwrap_err().to_string().contains("given up"));
            }
            5 => assert_eq!(granted(answer).tokens, again, "the same owner has the same tokens"),
            9 => assert_eq!(failed(&answer), (ErrorKind::Protocol, Effect::Unknown)),
            _ => assert_eq!(granted(answer).owner, claims[lock].owner),
        }
    }
    let stored: String = server.command(&["GET", "lock 7"]);
    assert!(stored.contains(&next.owner.to_wire().to_string()), "{stored}");

    let (ran, answers) = scripts(server, || crowd.release(&claims));
    assert_eq!(ran, 1);
    for (lock, answer) in answers.into_iter().enumerate() {
        match lock {
            1 | 3 | 4 | 6 | 7 => assert_eq!(answer.unwrap(), Released::NotHeld, "lock {lock}"),
            2 => assert_eq!(answer.unwrap(), Released::Left),
            9 => assert_eq!(failed(&answer), (ErrorKind::Protocol, Effect::Unknown)),
            _ => assert_eq!(answer.unwrap(), Released::Released, "lock {lock}"),
        }
    }
    assert!(exists(server, "lock 3") && exists(server, "lock 6"), "what is another program's stays");
    assert!(server.command::<String>(&["GET", "lock 1"]).contains(&held.owner.to_wire().to_string()));
}

fn all_or_nothing(said: &[Said]) {
    assert!(said.iter().all(|said| matches!(said, Said::Released(Ok(Released::NotHeld)))), "{said:?}");
}

#[test]
fn requests_for_one_lock_take_effect_in_their_order() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let (first, second, third) = (claim("job"), claim("job"), claim("job"));
    let release = |claim: &Claim| Ask::Release(release_of(claim, Certainty::Answered));
    let others = claims(3);
    let asks = vec![
        Ask::Acquire(others[0].clone()),
        Ask::Acquire(first.clone()),
        Ask::Acquire(second.clone()),
        release(&first),
        release(&others[0]),
        Ask::Acquire(third.clone()),
        Ask::Acquire(others[1].clone()),
        release(&third),
        Ask::Acquire(second.clone()),
    ];
    let (ran, said) = scripts(&server, || crowd.ask(asks));
    assert_eq!(ran, 6, "a name that is met again begins another command");
    let mut said = said.into_iter();
    let mut next = || said.next().unwrap();
    granted(acquired(next()));
    granted(acquired(next()));
    is_busy(acquired(next()));
    assert_eq!(released(next()).unwrap(), Released::Released);
    assert_eq!(released(next()).unwrap(), Released::Released);
    granted(acquired(next()));
    granted(acquired(next()));
    assert_eq!(released(next()).unwrap(), Released::Released);
    granted(acquired(next()));
}

#[test]
fn a_lost_counter_is_made_good_for_all() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let before = crowd.take(&[claim("before")])[0].tokens.high();
    server.command::<()>(&["DEL", "leasehold:counter"]);
    let leases = crowd.take(&claims(5));
    assert!(leases.iter().all(|lease| lease.tokens.low() > before), "{leases:?}");
}

#[test]
fn the_next_in_line_of_each_lock_is_served() {
    let server = RedisServer::start();
    let (crowd, rival) = (Crowd::new(&server.url()), Crowd::new(&server.url()));
    let claims = claims(6);
    crowd.take(&claims);
    let waiters: Vec<_> = claims
        .iter()
        .step_by(2)
        .map(|held| Claim { queueing: Queueing::Wanted, ..claim(held.name.as_str()) })
        .collect();
    for answer in rival.acquire(&waiters) {
        assert!(matches!(answer, Ok(Answer::Queued { position: 1, .. })), "{answer:?}");
    }
    let (ran, answers) = scripts(&server, || crowd.release(&claims));
    all_released(answers);
    assert_eq!(ran, 1);
    for (index, held) in claims.iter().enumerate() {
        assert_eq!(exists(&server, held.name.as_str()), index % 2 == 0, "{}", held.name);
    }
    assert_eq!(rival.take(&waiters).len(), 3);
}

#[test]
fn releases_that_nobody_waits_for_end_only_their_own_holds() {
    let server = RedisServer::start();
    let (crowd, rival) = (Crowd::new(&server.url()), Crowd::new(&server.url()));
    let claims = claims(3);
    crowd.take(&claims[..2]);
    rival.take(&[claim("lock 2")]);
    let (ran, answers) = scripts(&server, || crowd.release(&claims));
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!((ran, answers), (1, vec![Released::Released, Released::Released, Released::NotHeld]));
    assert_eq!([0, 1, 2].map(|lock| exists(&server, &format!("lock {lock}"))), [false, false, true]);
}

#[test]
fn forgotten_scripts_for_many_are_loaded_again() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let claims = claims(TOGETHER);
    for _ in 0..2 {
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        crowd.take(&claims);
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        all_released(crowd.release(&claims));
    }
    crowd.take(&claims);
    let (ran, answers) = scripts(&server, || crowd.release(&claims));
    all_released(answers);
    assert_eq!(ran, 1, "the script was not loaded again");
}

#[test]
fn a_right_that_is_missing_for_one_lock_concerns_no_other() {
    let server = RedisServer::start();
    let rights = ["~lock*", "~alone", "~leasehold:*", "&*", "+@all"];
    server.command::<()>(&[&["ACL", "SETUSER", "app", "on", ">pw"], &rights[..]].concat());
    let crowd = Crowd::new(&format!("redis://app:pw@127.0.0.1:{}", server.port()));
    let claims = [claim("lock 1"), claim("forbidden"), claim("lock 2")];
    let answers = crowd.acquire(&claims);
    assert_eq!(failed(&answers[1]), (ErrorKind::Denied, Effect::None));
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let answers = crowd.release(&claims);
    assert_eq!(failed(&answers[1]), (ErrorKind::Denied, Effect::None));
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    // The server has the scripts by now, so the right to load them is not needed.
    server.command::<()>(&["ACL", "SETUSER", "app", "-script"]);
    let answers = crowd.acquire(&claims);
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
}

#[test]
fn a_lost_reply_leaves_each_outcome_unknown() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let crowd = Crowd::new(&server.url_at(proxy.port()));
    let claims = claims(5);
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    for answer in crowd.acquire(&claims) {
        assert_eq!(failed(&answer), (ErrorKind::Unreachable, Effect::Unknown));
    }
    assert!(proxy.fired() > 0, "no reply was lost");
    proxy.heal();
    // Asking again is the same request, whether or not the first one took effect.
    let leases = crowd.take(&claims);
    for (claim, lease) in claims.iter().zip(&leases) {
        let stored: String = server.command(&["GET", claim.name.as_str()]);
        assert!(stored.contains(&format!(":{}:", lease.tokens.high())), "{stored}");
    }
    // A release is repeated automatically.
    proxy.set(Fault::CutOneReply);
    all_released(crowd.release(&claims));
    assert!(proxy.fired() > 0, "no reply was lost");
    assert!(claims.iter().all(|claim| !exists(&server, claim.name.as_str())));
}

#[test]
fn a_full_server_grants_nothing_and_takes_releases() {
    for version in [RedisVersion::Installed, RedisVersion::Oldest] {
        let options = RedisOptions::default().version(version).arguments(&["--maxmemory-policy", "noeviction"]);
        full(&RedisServer::start_with(options));
    }
}

fn full(server: &RedisServer) {
    let crowd = Crowd::new(&server.url());
    let held = claims(4);
    crowd.take(&held);
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let (ran, answers) = scripts(server, || crowd.acquire(&[claim("new"), claim("lock 1"), claim("newer")]));
    assert_eq!(ran, 1);
    let [new, busy, newer] = <[_; 3]>::try_from(answers).unwrap();
    assert_eq!(failed(&new), (ErrorKind::Unavailable, Effect::None));
    is_busy(busy);
    assert_eq!(failed(&newer), (ErrorKind::Unavailable, Effect::None));
    let (ran, answers) = scripts(server, || crowd.release(&held));
    all_released(answers);
    assert_eq!(ran, 1);
}

#[test]
fn a_request_that_was_given_up_before_it_was_sent_is_not_sent() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let (given_up, kept) = (claim("given up"), claims(3));
    let ask = |claim: Claim| {
        let redis = Arc::clone(&crowd.redis);
        async move { redis.acquire(&claim, SOON).await }
    };
    crowd.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for claim in [claim("alone")].into_iter().chain(kept) {
            tasks.spawn(ask(claim));
        }
        // It is asked once the first one is in flight, and dropped before anything else runs.
        let mut request = Box::pin(ask(given_up));
        let given_up =
            tokio::spawn(
                async move { poll_fn(|context| Poll::Ready(request.as_mut().poll(context).is_pending())).await },
            );
        assert!(given_up.await.unwrap(), "it was answered at once");
        assert!(tasks.join_all().await.into_iter().all(|answer| answer.is_ok()));
    });
    assert!(!exists(&server, "given up"));
}

/// More than the task that sends them can send in one go.
#[test]
fn thousands_of_requests_are_sent_in_their_order() {
    const MANY: usize = 1_600;
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let (held, next) = (claims(MANY), claims(MANY));
    crowd.take(&held);
    let releases = held.iter().map(|claim| Ask::Release(release_of(claim, Certainty::Answered)));
    let said = crowd.ask(releases.chain(next.into_iter().map(Ask::Acquire)).collect());
    said.into_iter().skip(MANY).for_each(|said| _ = granted(acquired(said)));
}

/// Measured: 600 bytes in a debug build with all features, 480 for most users. Each task that waits for an answer, or for its turn to
/// ask, keeps one of these.
#[test]
fn a_request_in_flight_is_small() {
    let server = RedisServer::start();
    let crowd = Crowd::new(&server.url());
    let size = size_of_val(&*crowd.redis.acquire(&claim("a"), SOON));
    assert!(size <= 700, "{size} bytes");
}
