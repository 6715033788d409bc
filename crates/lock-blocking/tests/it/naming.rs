//! What can name a lock.

use lock_core::{AcquireError, LockName};

use crate::support::Bench;

#[test]
fn text_and_lock_names_name_the_same_lock() {
    let (bench, name, text) = (Bench::new(), "a".parse::<LockName>().unwrap(), "a".to_owned());
    let client = bench.client();
    let held = client.mutex(name.clone()).acquire().unwrap();
    for mutex in [client.mutex(&name), client.mutex(&text), client.mutex("a"), client.mutex(name), client.mutex(text)] {
        assert!(mutex.try_acquire().unwrap().is_none(), "{mutex:?}");
    }
    held.release().unwrap();
}

#[test]
fn a_name_that_is_not_valid_is_an_error_of_the_acquire() {
    let mutex = Bench::new().client().mutex(String::new());
    assert!(matches!(mutex.acquire(), Err(AcquireError::Invalid(_))));
    assert!(matches!(mutex.try_acquire(), Err(AcquireError::Invalid(_))));
}
