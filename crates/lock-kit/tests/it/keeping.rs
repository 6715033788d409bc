//! Stores that cannot keep a lock say so, and free it.

use std::time::Duration;

use lock_core::{Ability, Effect, ErrorKind};
use lock_host::HoldError;

use crate::support::Store;

const TIME: Duration = Duration::from_secs(60);

fn is_unsupported(outcome: Result<(), HoldError>) -> bool {
    let Err(HoldError::Backend(error)) = outcome else { return false };
    error.kind() == ErrorKind::Unsupported && error.effect() == Effect::None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_kept_as_the_capabilities_say() {
    for store in Store::with_quorum() {
        let client = store.tokio().await;
        let can_keep = client.capabilities().abilities.contains(&Ability::Keep);
        let outcome = client.mutex("a").acquire().await.unwrap().release_keeping(TIME).await;
        assert_eq!((outcome.is_ok(), is_unsupported(outcome)), (can_keep, !can_keep));
        assert_eq!(client.mutex("a").try_acquire().await.unwrap().is_none(), can_keep);
    }
}

#[test]
fn a_lock_is_kept_as_the_capabilities_say_in_threads() {
    for store in Store::with_quorum() {
        let client = store.plain();
        let can_keep = client.capabilities().abilities.contains(&Ability::Keep);
        let outcome = client.mutex("a").acquire().unwrap().release_keeping(TIME);
        assert_eq!((outcome.is_ok(), is_unsupported(outcome)), (can_keep, !can_keep));
        assert_eq!(client.mutex("a").try_acquire().unwrap().is_none(), can_keep);
    }
}
