//! Tokens rise, whatever happens to the server's data.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{Certainty, FencingToken, Width};
use lock_redis::nonblocking;
use test_support::{RedisOptions, RedisServer};

use crate::support::{Client, SOON, both, bridged, claim, draw, eventually, granted, release_of};

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// Draws tokens until the client has reconnected to the restarted server.
fn draw_again(client: &Client, name: &str) -> FencingToken {
    eventually("the client finds the server again", || {
        let claim = claim(name);
        let answer = client.acquire(&claim, SOON);
        client.release(&release_of(&claim, Certainty::Unknown), SOON)?;
        answer.map(|answer| granted(Ok(answer)).tokens.high())
    })
}

#[test]
fn tokens_begin_at_the_clock_and_count_from_there() {
    let server = RedisServer::start();
    let before = now();
    for (facade, client) in both(&server.url()) {
        let first = draw(&client, facade).get();
        assert!(first > before && first <= now() + 1_000_000, "{facade}: {first}");
        let mut wide = claim(facade);
        wide.width = Width::MAX;
        let tokens = granted(client.acquire(&wide, SOON)).tokens;
        assert_eq!((tokens.low().get(), tokens.high().get()), (first + 1, first + 64));
        assert_eq!(server.command::<u64>(&["GET", "leasehold:counter"]), first + 64);
    }
}

#[test]
fn tokens_rise_over_restarts_and_losses() {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let clients = both(&server.url());
    let mut last = FencingToken::new(1).unwrap();
    let mut rises = |how: &str, draw: &dyn Fn(&Client) -> FencingToken| {
        for (facade, client) in &clients {
            let token = draw(client);
            assert!(token > last, "{how}, {facade}: {token} is not above {last}");
            last = token;
        }
    };
    rises("at first", &|client| draw(client, "job"));
    let early = server.copy_data();
    for _ in 0..50 {
        rises("in a row", &|client| draw(client, "job"));
    }
    server.command::<()>(&["FLUSHALL"]);
    rises("flushed", &|client| draw(client, "job"));
    server.command::<()>(&["DEL", "leasehold:counter"]);
    rises("counter deleted", &|client| draw(client, "job"));
    server.restart_with_data();
    rises("restarted", &|client| draw_again(client, "job"));
    server.restart_from(&early);
    rises("an old file", &|client| draw_again(client, "job"));
    server.restart_empty();
    rises("restarted empty", &|client| draw_again(client, "job"));
}

#[test]
fn a_lower_counter_of_another_incarnation_is_raised_before_it_is_used() {
    let server = RedisServer::start();
    server.command::<()>(&["SET", "leasehold:counter", "5"]);
    server.command::<()>(&["SET", "leasehold:incarnation", "the server of last week"]);
    let before = now();
    for (facade, client) in both(&server.url()) {
        assert!(draw(&client, facade).get() > before);
    }
    let incarnation: String = server.command(&["GET", "leasehold:incarnation"]);
    let (run_id, replid) = incarnation.split_once(':').unwrap();
    let info: String = server.command(&["INFO"]);
    assert!(info.contains(&format!("run_id:{run_id}")) && info.contains(&format!("master_replid:{replid}")));
}

#[test]
fn a_higher_counter_is_never_lowered() {
    let server = RedisServer::start();
    let ahead = now() + 3_600_000_000;
    server.command::<()>(&["SET", "leasehold:counter", &ahead.to_string()]);
    let [(_, one), (_, other)] = both(&server.url());
    assert_eq!(draw(&one, "job").get(), ahead + 1);
    assert_eq!(draw(&other, "job").get(), ahead + 2);
}

#[test]
fn a_floor_lifts_the_counter_within_reason() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let mut ahead = claim(facade);
        ahead.floor = Some(FencingToken::new(now() + 60_000_000).unwrap());
        assert!(Some(granted(client.acquire(&ahead, SOON)).tokens.low()) > ahead.floor);
        let mut absurd = claim(&format!("{facade}:absurd"));
        absurd.floor = Some(FencingToken::MAX);
        assert!(granted(client.acquire(&absurd, SOON)).tokens.high().get() < now() + 2 * 86_400_000_000);
    }
}

#[test]
fn the_last_token_is_the_last() {
    let server = RedisServer::start();
    let [(_, client), _] = both(&server.url());
    server.command::<()>(&["SET", "leasehold:counter", &(FencingToken::MAX.get() - 1).to_string()]);
    assert_eq!(draw(&client, "job"), FencingToken::MAX);
    let error = client.acquire(&claim("job"), SOON).unwrap_err();
    assert!(error.to_string().contains("used up"), "{error}");
    assert_eq!(server.command::<u8>(&["EXISTS", "job"]), 0);
}

#[test]
fn prefixes_share_the_counter() {
    let server = RedisServer::start();
    let [(_, bare), _] = both(&server.url());
    let [(_, shop), _] = both(&format!("{}?prefix=shop", server.url()));
    let first = draw(&bare, "job").get();
    assert_eq!(draw(&shop, "job").get(), first + 1);
    assert_eq!(draw(&bare, "job").get(), first + 2);
}

#[test]
fn a_connection_that_was_handed_in_counts_by_the_clock() {
    let server = RedisServer::start();
    let url = server.url();
    let redis: Client = Arc::new(bridged(async || {
        let client = redis::Client::open(url).unwrap();
        nonblocking::Redis::from(client.get_multiplexed_async_connection().await.unwrap())
    }));
    let first = draw(&redis, "job").get();
    // As if the server had come back with old data, behind the back of a connection that nobody verified.
    server.command::<()>(&["SET", "leasehold:counter", "5"]);
    std::thread::sleep(Duration::from_millis(2));
    assert!(draw(&redis, "job").get() > first);
    let ahead = now() + 3_600_000_000;
    server.command::<()>(&["SET", "leasehold:counter", &ahead.to_string()]);
    assert_eq!(draw(&redis, "job").get(), ahead + 1);
}
