//! The scenes, a file for each, in the order in which they are best read.

mod eviction;
mod expired_session;
mod fail_over;
mod foreign_delete;
mod get_compare_delete;
mod late_reply;
mod lost_reply;
mod lost_update;
mod paused_holder;
mod quorum_restart;
mod setnx_expire;
mod stale_follower;
mod transaction_fence;

use super::scene::Scene;

/// All of them.
pub(crate) const SCENES: [&Scene; 13] = [
    &paused_holder::SCENE,
    &foreign_delete::SCENE,
    &get_compare_delete::SCENE,
    &setnx_expire::SCENE,
    &lost_update::SCENE,
    &fail_over::SCENE,
    &late_reply::SCENE,
    &lost_reply::SCENE,
    &eviction::SCENE,
    &quorum_restart::SCENE,
    &transaction_fence::SCENE,
    &expired_session::SCENE,
    &stale_follower::SCENE,
];
