//! Requests that are in flight together over one connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, AsyncBackend, BackendError, Certainty, Claim, Effect, ErrorKind, Released, TokenRange};
use lock_redis::{RedisConfig, nonblocking};
use test_support::{Proxy, RedisServer};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::faults::{evaluations, exists};
use crate::support::{BOTH, Client, SHORT, SOON, both, claim, draw, eventually, granted, release_of};

const MANY: usize = 200;

fn claim_of(lock: usize) -> Claim {
    claim(&format!("lock {lock}"))
}

/// The tokens of the locks with odd numbers. The others are held, which shows an answer that went to another request.
fn tokens_of(answers: impl IntoIterator<Item = (usize, Answer)>) -> BTreeSet<TokenRange> {
    let mut tokens = BTreeSet::new();
    for (lock, answer) in answers {
        match &answer {
            Answer::Granted { lease, .. } if lock % 2 == 1 => _ = tokens.insert(lease.tokens),
            Answer::Busy { .. } if lock % 2 == 0 => {}
            Answer::Granted { .. } | Answer::Queued { .. } | Answer::Busy { .. } => panic!("lock {lock}: {answer:?}"),
        }
    }
    tokens
}

#[test]
fn each_has_its_own_answer() {
    let server = RedisServer::start();
    let config = RedisConfig::from_url(&server.url()).unwrap();
    Runtime::new().unwrap().block_on(async {
        let redis = Arc::new(nonblocking::Redis::connect(&config).await.unwrap());
        for lock in (0..MANY).step_by(2) {
            redis.acquire(&claim_of(lock), SOON).await.unwrap();
        }
        let mut requests = JoinSet::new();
        for lock in 0..MANY {
            let redis = Arc::clone(&redis);
            requests.spawn(async move { (lock, redis.acquire(&claim_of(lock), SOON).await.unwrap()) });
        }
        let tokens = tokens_of(requests.join_all().await);
        assert_eq!(tokens.len(), MANY / 2, "no two leases have the same token");
    });
}

fn on_threads(url: &str) -> Client {
    BOTH.into_iter().find_map(|(facade, connect)| (facade == "blocking").then(|| connect(url))).unwrap()
}

/// Runs something for each of many locks at the same time.
fn on_many_threads<T: Send>(run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..MANY).map(|lock| scope.spawn(move || run(lock))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_share_a_few_connections_and_each_has_its_own_answer() {
    let server = RedisServer::start();
    let client = on_threads(&server.url());
    let held = |lock: &usize| client.acquire(&claim_of(*lock), SOON);
    assert!((0..MANY).step_by(2).collect::<Vec<_>>().iter().map(held).all(|answer| answer.is_ok()));
    let tokens = tokens_of(on_many_threads(|lock| (lock, client.acquire(&claim_of(lock), SOON).unwrap())));
    assert_eq!(tokens.len(), MANY / 2, "no two leases have the same token");
    let clients: String = server.command(&["CLIENT", "LIST"]);
    let ours = clients.lines().filter(|line| line.contains("name=") && line.contains("cmd=evalsha")).count();
    assert!((1..=8).contains(&ours), "{ours} connections for {MANY} threads");
}

#[test]
fn what_threads_ask_at_the_same_time_is_a_few_commands() {
    let server = RedisServer::start();
    let client = on_threads(&server.url());
    let held: Vec<Claim> = (0..MANY).map(claim_of).collect();
    assert!(held.iter().step_by(2).all(|claim| client.acquire(claim, SOON).is_ok()));
    let before = evaluations(&server);
    server.stop();
    thread::scope(|scope| {
        let resuming = scope.spawn(|| {
            thread::sleep(SHORT);
            server.resume();
        });
        on_many_threads(|lock| {
            if lock % 2 == 0 {
                let released = client.release(&release_of(&held[lock], Certainty::Answered), SOON);
                assert_eq!(released, Ok(Released::Released), "lock {lock}");
            } else {
                granted(client.acquire(&held[lock], SOON));
            }
        });
        resuming.join().unwrap();
    });
    let commands = evaluations(&server) - before;
    assert!(commands < MANY as u64 / 4, "{commands} commands");
}

#[test]
fn a_script_that_the_server_forgot_is_loaded_for_all_who_share_a_connection() {
    let server = RedisServer::start();
    let client = on_threads(&server.url());
    draw(&client, "job");
    for _ in 0..3 {
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        on_many_threads(|lock| draw(&client, &format!("lock {lock}")));
    }
}

#[test]
fn a_connection_that_breaks_under_many_threads_breaks_no_promise() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let client = on_threads(&server.url_at(proxy.port()));
    thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(20));
                proxy.cut();
            }
        });
        on_many_threads(|lock| {
            while !cutting.is_finished() {
                let claim = claim_of(lock);
                let answer = client.acquire(&claim, SOON);
                let certainty = if answer.is_ok() { Certainty::Answered } else { Certainty::Unknown };
                if let Err(error) = &answer {
                    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
                }
                let released = release_in_the_end(&client, &claim, certainty);
                let held = matches!(answer, Ok(Answer::Granted { .. }));
                assert!(!held || released != Ok(Released::NotHeld), "lock {lock} was lost");
            }
        });
    });
    let held: Vec<String> = server.command(&["KEYS", "lock *"]);
    assert!(held.is_empty(), "left behind: {held:?}");
}

/// Releases a lock over a network that breaks repeatedly, and returns the first answer.
fn release_in_the_end(client: &Client, claim: &Claim, certainty: Certainty) -> Result<Released, BackendError> {
    let first = client.release(&release_of(claim, certainty), SOON);
    if first.is_err() {
        let again = release_of(claim, Certainty::Unknown);
        eventually("the lock is released", || client.release(&again, SOON));
    }
    first
}

#[test]
fn threads_that_share_the_connections_of_a_stopped_server_are_told_in_time_what_was_sent() {
    let server = RedisServer::start();
    let client = on_threads(&server.url());
    on_many_threads(|lock| draw(&client, &format!("lock {lock}")));
    server.stop();
    let begun = Instant::now();
    let errors: Vec<(Claim, BackendError)> = on_many_threads(|lock| {
        let claim = claim_of(lock);
        let error = client.acquire(&claim, 4 * SHORT).unwrap_err();
        (claim, error)
    });
    // Each has its own limit; they do not add up.
    assert!(begun.elapsed() < 20 * SHORT, "after {:?}", begun.elapsed());
    server.resume();
    draw(&both(&server.url())[1].1, "afterwards");
    for (claim, error) in errors {
        match (error.kind(), error.effect()) {
            (ErrorKind::Timeout, Effect::Unknown) => {
                client.release(&release_of(&claim, Certainty::Unknown), SOON).unwrap();
            }
            (ErrorKind::Unreachable, Effect::None) => {
                assert!(!exists(&server, claim.name.as_str()), "{} was sent after all: {error}", claim.name);
            }
            (_, _) => panic!("{error}"),
        }
    }
    on_many_threads(|lock| draw(&client, &format!("lock {lock}")));
}
