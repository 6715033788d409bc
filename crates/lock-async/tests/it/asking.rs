//! Names and options of a mutex.

use std::time::Duration;

use lock_core::{AcquireError, LockName};
use lock_host::LockOptions;

use crate::support::Bench;

#[tokio::test]
async fn text_and_lock_names_name_the_same_lock() {
    let (bench, name, text) = (Bench::new(), "a".parse::<LockName>().unwrap(), "a".to_owned());
    let client = bench.client();
    let held = client.mutex(name.clone()).acquire().await.unwrap();
    for mutex in [client.mutex(&name), client.mutex(&text), client.mutex("a"), client.mutex(name), client.mutex(text)] {
        assert!(mutex.try_acquire().await.unwrap().is_none(), "{mutex:?}");
    }
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_not_valid_is_an_error_of_the_acquire() {
    let mutex = Bench::new().client().mutex(String::new());
    assert!(matches!(mutex.acquire().await, Err(AcquireError::Invalid(_))));
    assert!(matches!(mutex.try_acquire().await, Err(AcquireError::Invalid(_))));
}

#[tokio::test]
async fn options_are_set_as_a_whole_or_one_by_one() {
    let (bench, hour) = (Bench::new(), Duration::from_secs(3600));
    let mutex = bench.client().mutex("a");
    let whole = mutex.clone().max_hold(hour).options(LockOptions::default().ttl(hour));
    for mutex in [whole, mutex.clone().ttl(hour)] {
        let guard = mutex.acquire().await.unwrap();
        assert!(guard.remaining() > hour / 2 && guard.remaining() < hour, "{mutex:?}");
        guard.release().await.unwrap();
    }
    let bad = LockOptions::default().ttl(Duration::ZERO).ttl(hour);
    for mutex in [mutex.clone().options(bad), mutex.ttl(Duration::ZERO).ttl(hour)] {
        let error = mutex.acquire().await.unwrap_err();
        assert!(matches!(&error, AcquireError::Invalid(ttl) if ttl.to_string().contains("ttl \"0s\"")), "{error}");
    }
}
