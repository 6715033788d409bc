//! What tests of one program use together.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Something that is made for the first test that wants it, and dropped by the last one that uses it.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// Nobody uses it yet.
    #[expect(clippy::new_without_default, reason = "it is always a static")]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// What others use, or a new one.
    pub fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *shared = Arc::downgrade(&made);
            made
        })
    }
}
