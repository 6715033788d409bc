//! The scenes, a file for each, in the order in which they are best read.

mod client_clock_step;
mod clock_step;
mod eviction;
mod fail_over;
mod foreign_delete;
mod get_compare_delete;
mod late_reply;
mod lost_reply;
mod lost_update;
mod paused_holder;
mod power_loss;
mod quorum_restart;
mod setnx_expire;
mod two_paused_holders;

use super::scene::Scene;

/// All of them.
pub(crate) const SCENES: [&Scene; 14] = [
    &paused_holder::SCENE,
    &two_paused_holders::SCENE,
    &foreign_delete::SCENE,
    &get_compare_delete::SCENE,
    &setnx_expire::SCENE,
    &lost_update::SCENE,
    &fail_over::SCENE,
    &power_loss::SCENE,
    &clock_step::SCENE,
    &client_clock_step::SCENE,
    &late_reply::SCENE,
    &lost_reply::SCENE,
    &eviction::SCENE,
    &quorum_restart::SCENE,
];
