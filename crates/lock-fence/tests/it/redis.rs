//! The checks in Redis.

use std::time::Duration;

use ::redis::{Commands, Connection};
use lock_fence::Refused;
use lock_fence::redis::{Fenced, FencedError};
use test_support::bounds::wait_for;
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::{token, write_token};

fn connect(server: &RedisServer) -> Connection {
    ::redis::Client::open(server.url()).unwrap().get_connection().unwrap()
}

fn is_refused<T>(result: Result<T, FencedError>, by: u64) -> bool {
    matches!(result, Err(FencedError::Refused(Refused { highest, .. })) if highest == token(by))
}

/// Runs on the oldest supported server as well.
fn on_each_server(test: impl Fn(&mut Connection)) {
    for version in [RedisVersion::Installed, RedisVersion::Oldest] {
        let server = RedisServer::start_with(RedisOptions::default().version(version));
        test(&mut connect(&server));
    }
}

#[test]
fn a_late_write_of_each_kind_is_refused_and_changes_nothing() {
    on_each_server(|redis| {
        let (text, hash) = (Fenced::new("text").unwrap(), Fenced::new("{user:7}:hash").unwrap());
        text.set(token(34), "new").run(redis).unwrap();
        assert_eq!(hash.hset(token(34), &[("a", 1), ("b", 2)]).run(redis).unwrap(), 2);
        assert!(is_refused(text.set(token(33), "old").run(redis), 34));
        assert!(is_refused(text.set_for(token(33), "old", Duration::from_secs(1)).run(redis), 34));
        assert!(is_refused(hash.hset(token(33), &[("a", 3)]).run(redis), 34));
        assert!(is_refused(text.del(token(33)).run(redis), 34) && is_refused(hash.del(token(33)).run(redis), 34));
        assert_eq!(redis.get::<_, String>("text").unwrap(), "new");
        assert_eq!(redis.hget::<_, _, u8>("{user:7}:hash", "a").unwrap(), 1);
        assert_eq!(redis.get::<_, u64>("leasehold:{text}:fence").unwrap(), 34);
        assert_eq!(redis.get::<_, u64>(hash.fence_key()).unwrap(), 34);
        assert_eq!(redis.pttl::<_, i64>("text").unwrap(), -1);
    });
}

#[test]
fn a_deleted_or_expired_value_keeps_its_fence() {
    on_each_server(|redis| {
        let text = Fenced::new("text").unwrap();
        text.set_for(token(34), "new", Duration::from_micros(1)).run(redis).unwrap();
        assert_eq!(redis.pttl::<_, i64>(text.fence_key()).unwrap(), -1);
        text.set_for(token(34), "lasting", Duration::MAX).run(redis).unwrap();
        assert_eq!(redis.get::<_, String>("text").unwrap(), "lasting");
        text.set(token(35), "new").run(redis).unwrap();
        assert!(text.del(token(36)).run(redis).unwrap());
        assert!(!text.del(token(36)).run(redis).unwrap());
        assert!(is_refused(text.set(token(35), "old").run(redis), 36));
        assert!(!redis.exists::<_, bool>("text").unwrap());
    });
}

#[test]
fn a_reader_changes_nothing() {
    on_each_server(|redis| {
        let (text, hash) = (Fenced::new("text").unwrap(), Fenced::new("hash").unwrap());
        assert_eq!(text.get::<String>(token(90)).run(redis).unwrap(), None);
        text.set(token(34), "new").run(redis).unwrap();
        hash.hset(token(34), &[("a", "1")]).run(redis).unwrap();
        assert_eq!(text.get::<String>(token(90)).run(redis).unwrap().as_deref(), Some("new"));
        assert_eq!(hash.hget::<u8>(token(34), "a").run(redis).unwrap(), Some(1));
        assert_eq!(hash.hget::<u8>(token(34), "b").run(redis).unwrap(), None);
        assert!(is_refused(text.get::<String>(token(33)).run(redis), 34));
        assert!(is_refused(hash.hget::<u8>(token(33), "a").run(redis), 34));
        text.set(token(34), "newer").run(redis).unwrap();
    });
}

#[test]
fn a_fence_is_raised_before_there_is_a_value() {
    on_each_server(|redis| {
        let text = Fenced::new("text").unwrap();
        text.raise(write_token(34)).run(redis).unwrap();
        assert!(is_refused(text.raise(write_token(33)).run(redis), 34));
        assert!(is_refused(text.set(token(33), "old").run(redis), 34));
        assert!(!redis.exists::<_, bool>("text").unwrap());
        text.raise(write_token(34)).run(redis).unwrap();
        text.set(token(34), "new").run(redis).unwrap();
        assert_eq!((redis.get("text"), redis.get(text.fence_key())), (Ok("new".to_owned()), Ok(34)));
    });
}

#[test]
fn what_is_in_the_way_is_an_error_and_stays() {
    on_each_server(|redis| {
        let text = Fenced::new("text").unwrap();
        text.set(token(34), "new").run(redis).unwrap();
        let error = text.hset(token(35), &[("a", 1)]).run(redis).unwrap_err();
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
        assert_eq!(redis.get::<_, u64>(text.fence_key()).unwrap(), 34, "an error raised the fence");
        for bad in ["-5", "x", "", "9007199254740992", "1.5"] {
            let _: () = redis.set(text.fence_key(), bad).unwrap();
            let error = text.set(token(35), "newer").run(redis).unwrap_err();
            let FencedError::Redis(told) = &error else { panic!("{error}") };
            assert_eq!(told.code(), Some("BADFENCE"), "{bad}: {error}");
        }
        assert_eq!(redis.get::<_, String>("text").unwrap(), "new");
    });
}

#[test]
fn odd_keys_values_and_the_highest_token_are_exact() {
    on_each_server(|redis| {
        let highest = lock_core::FencingToken::MAX;
        for key in ["späť", "a b\n", "}{", "{}", "a\0b", "{x}", "x"] {
            let fenced = Fenced::new(key).unwrap();
            fenced.set(highest, &[0_u8, 255][..]).run(redis).unwrap();
            assert_eq!(redis.get::<_, Vec<u8>>(key).unwrap(), [0, 255], "{key:?}");
            assert_eq!(redis.get::<_, u64>(fenced.fence_key()).unwrap(), highest.get());
            assert!(is_refused(fenced.set(token(highest.get() - 1), "").run(redis), highest.get()));
        }
    });
}

#[test]
fn a_value_and_its_fence_are_in_one_slot_of_a_cluster() {
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--cluster-enabled", "yes"]));
    let mut redis = connect(&server);
    let _: () = ::redis::cmd("CLUSTER").arg(&["ADDSLOTSRANGE", "0", "16383"]).query(&mut redis).unwrap();
    wait_for("the cluster", || {
        let info: String = ::redis::cmd("CLUSTER").arg("INFO").query(&mut redis).unwrap();
        info.contains("cluster_state:ok").then_some(())
    });
    for key in ["text", "späť \n", "{user:7}:cart", "cart:{user:7}", "{", "a{b", "{{x}}", "{a}{b}"] {
        let fenced = Fenced::new(key).unwrap();
        fenced.set(token(34), "new").run(&mut redis).unwrap();
        assert!(is_refused(fenced.set(token(33), "old").run(&mut redis), 34), "{key}");
    }
    let error = Fenced::new("a}b").unwrap().set(token(34), "new").run(&mut redis).unwrap_err();
    assert!(error.to_string().contains("slot"), "{error}");
}

#[test]
fn a_full_server_still_deletes() {
    let server = RedisServer::start();
    let mut redis = connect(&server);
    let text = Fenced::new("text").unwrap();
    text.set(token(34), "new").run(&mut redis).unwrap();
    let _: () = ::redis::cmd("CONFIG").arg(&["SET", "maxmemory", "1"]).query(&mut redis).unwrap();
    assert!(text.set(token(35), "newer").run(&mut redis).unwrap_err().to_string().contains("OOM"));
    assert!(text.del(token(36)).run(&mut redis).unwrap());
    assert_eq!(redis.get::<_, u64>(text.fence_key()).unwrap(), 36);
}

#[tokio::test]
async fn an_async_connection_does_the_same() {
    let server = RedisServer::start();
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut redis = client.get_multiplexed_async_connection().await.unwrap();
    let text = Fenced::new("text").unwrap();
    text.raise(write_token(34)).run_async(&mut redis).await.unwrap();
    text.set(token(34), "new").run_async(&mut redis).await.unwrap();
    assert!(is_refused(text.set(token(33), "old").run_async(&mut redis).await, 34));
    assert_eq!(text.get::<String>(token(34)).run_async(&mut redis).await.unwrap().as_deref(), Some("new"));
}

#[test]
fn a_hash_of_many_fields_is_written_whole() {
    on_each_server(|redis| {
        let hash = Fenced::new("hash").unwrap();
        let fields: Vec<_> = (0..10_001).map(|number| (format!("f{number}"), number)).collect();
        assert_eq!(hash.hset(token(34), &fields).run(redis).unwrap(), 10_001);
        assert_eq!(redis.hget::<_, _, u32>("hash", "f10000").unwrap(), 10_000);
        assert_eq!(hash.hset::<&str, u8>(token(34), &[]).run(redis).unwrap(), 0);
        assert!(is_refused(hash.hset(token(33), &fields).run(redis), 34));
    });
}
