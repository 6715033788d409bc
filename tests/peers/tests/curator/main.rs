//! Curator and leasehold in the same trouble at ZooKeeper. `benches/curator` prints the same scenes.

mod scenes;

use scenes::{LONG, Stories, cut_off, server_stopped};

/// After trouble that is too long for a session.
fn only_ours_says_so([ours, theirs]: &Stories) {
    assert!(
        ours.told.is_some_and(|told| ours.gone.is_none_or(|gone| told < gone)),
        "told before its node is gone: {ours}"
    );
    assert!(!ours.held && ours.refused.is_some(), "{ours:?}");
    assert!(
        theirs.held && theirs.refused.is_none(),
        "only the connection of Curator says so, not the lock: {theirs:?}"
    );
}

/// Here the server may also let the sessions live on, if the clients ask for them before it looks which are over.
#[test]
fn a_holder_is_told_only_by_ours_if_the_server_is_suspended_for_longer_than_the_session() {
    only_ours_says_so(&server_stopped(LONG).unwrap());
}

#[test]
fn a_holder_is_told_only_by_ours_if_it_is_cut_off_for_longer_than_the_session() {
    let stories = cut_off(LONG).unwrap();
    only_ours_says_so(&stories);
    assert!(stories.iter().all(|story| story.gone.is_some()), "both have lost their locks: {stories:?}");
}
