//! Guards that go on in another mode.

use std::sync::Arc;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::Operation;
use lock_memory::MemoryStore;
use lock_memory::faults::{Fault, Faults, Faulty};
use test_support::bounds::Watchdog;

/// Until the store has answered, the store no longer renews the lease that the guard relies on, which has 600 ms left at
/// most. A thread looks by itself only once a second.
#[test]
fn a_change_whose_answer_is_lost_is_asked_for_again_while_the_hold_lasts() {
    let _watchdog = Watchdog::over_this_test();
    let (store, faults) = (MemoryStore::default(), Faults::new());
    let client = Client::new(Arc::new(Faulty::new(store.blocking(), &faults))).unwrap();
    let guard = client.mutex("a").ttl(Duration::from_millis(600)).acquire().unwrap();
    faults.fail_next(Operation::Acquire, Fault::LostReply);
    let reader = guard.downgrade().unwrap();
    reader.release().unwrap();
}
