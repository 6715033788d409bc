//! What operators do to a quorum every night.

use std::time::{Duration, Instant};

use leasehold::redlock::{Purpose, RedlockConfig};
use test_support::{RedisOptions, RedisServer};

/// Nothing here takes as long; it only bounds a hang.
const WITHIN: Duration = Duration::from_secs(10);

/// A server that backs up without delay.
fn server() -> RedisServer {
    RedisServer::start_with(RedisOptions::default().arguments(&["--repl-diskless-sync-delay", "0"]))
}

/// The seal of the node on each server.
fn seals(servers: &[RedisServer]) -> Vec<String> {
    servers.iter().map(|server| server.command(&["HGET", "leasehold:node", "seal"])).collect()
}

/// Each server's identifier of the history of its data.
fn histories(servers: &[RedisServer]) -> Vec<String> {
    let history = |info: String| info.lines().find_map(|line| line.strip_prefix("master_replid:")).unwrap().to_owned();
    servers.iter().map(|server| history(server.command(&["INFO", "replication"]))).collect()
}

/// Waits until all nodes have granted a lock: a majority is enough for its holder.
#[track_caller]
fn granted_by_all(servers: &[RedisServer], name: &str) {
    let begun = Instant::now();
    while !servers.iter().all(|server| server.command::<u8>(&["EXISTS", name]) == 1) {
        assert!(begun.elapsed() < WITHIN, "a node has not granted {name}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_of_all_nodes_cost_no_vote_and_no_held_lock() {
    let servers: Vec<_> = (0..3).map(|_| server()).collect();
    let hosts: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let url = format!("redlock://{}?max_ttl=40s", hosts.join(","));
    let config = RedlockConfig::from_url(&url).unwrap();
    leasehold::redlock::nonblocking::open(&config).unwrap().pass(Purpose::Init, WITHIN).await.unwrap();

    let (tokio, plain) = (leasehold::connect(&url).await.unwrap(), leasehold::blocking::connect(&url).unwrap());
    let by_a_task = tokio.mutex("by-a-task").acquire().await.unwrap();
    let by_a_thread = plain.mutex("by-a-thread").acquire().unwrap();
    let (sealed, before) = (seals(&servers), histories(&servers));
    servers.iter().for_each(RedisServer::back_up);
    assert!(
        histories(&servers).iter().zip(before).all(|(after, before)| *after != before),
        "a history has its old name"
    );

    by_a_task.renew().await.unwrap();
    by_a_thread.renew().unwrap();
    let next_of_a_task = tokio.mutex("next-of-a-task").try_acquire().await.unwrap().unwrap();
    let next_of_a_thread = plain.mutex("next-of-a-thread").try_acquire().unwrap().unwrap();
    let newcomer = leasehold::connect(&url).await.unwrap();
    assert!(newcomer.mutex("by-a-thread").try_acquire().await.unwrap().is_none());
    let newcomers = newcomer.mutex("newcomers").try_acquire().await.unwrap().unwrap();
    for name in ["next-of-a-task", "next-of-a-thread", "newcomers"] {
        granted_by_all(&servers, name);
    }
    for guard in [by_a_task, next_of_a_task, newcomers] {
        guard.verify().await.unwrap();
    }
    for guard in [by_a_thread, next_of_a_thread] {
        guard.verify().unwrap();
    }
    assert_eq!(seals(&servers), sealed, "a node had to begin anew");
}
