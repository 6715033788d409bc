//! Pauses that the end of a client cuts short.

use std::sync::Arc;
use std::time::Duration;

use lock_host::{Member, Wake};
use tokio::sync::Notify;

use crate::errors::ObserveError;

/// Rings when the client may have been closed.
#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// Waits for so long.
///
/// # Errors
/// `Closed` as soon as the client is closed.
pub(super) async fn pause(lock: &Member, time: Duration) -> Result<(), ObserveError> {
    let bell = Arc::new(Bell::default());
    let whom: Arc<dyn Wake> = Arc::<Bell>::clone(&bell);
    let client = lock.closing.wakes(&lock.name, Arc::downgrade(&whom));
    let closed = async {
        while !client.is_over() {
            bell.0.notified().await;
        }
    };
    tokio::time::timeout(time, closed).await.map_or(Ok(()), |()| Err(ObserveError::Closed))
}
