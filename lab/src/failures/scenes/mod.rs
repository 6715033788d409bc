//! The scenes, a file for each, in the order in which they are best read.

mod client_clock_step;
mod clock_step;
mod eviction;
mod expired_session;
mod fail_over;
mod foreign_delete;
mod get_compare_delete;
mod ghosts;
mod late_reply;
mod lost_reply;
mod lost_update;
mod node_list;
mod paused_holder;
mod planned_fail_over;
mod power_loss;
mod quorum_restart;
mod setnx_expire;
mod split_brain;
mod stale_follower;
mod transaction_fence;
mod two_paused_holders;
mod two_servers_one_address;

use super::scene::Scene;

/// All of them.
pub(crate) const SCENES: [&Scene; 22] = [
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
    &planned_fail_over::SCENE,
    &split_brain::SCENE,
    &two_servers_one_address::SCENE,
    &late_reply::SCENE,
    &lost_reply::SCENE,
    &ghosts::SCENE,
    &eviction::SCENE,
    &quorum_restart::SCENE,
    &node_list::SCENE,
    &transaction_fence::SCENE,
    &expired_session::SCENE,
    &stale_follower::SCENE,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A section of the book has the title of its first scene.
    #[test]
    fn the_book_has_every_scene() {
        let page = include_str!("../../../../docs/book/src/failure-modes.md");
        for Scene { name, title, .. } in SCENES {
            let is_first = page.contains(&format!("\n### {title}\n\n`{name}`"));
            assert!(is_first || page.contains(&format!(", `{name}`\n")), "{name}: {title}");
        }
    }
}
