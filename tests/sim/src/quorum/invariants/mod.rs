//! What must hold with a quorum, besides what holds for all stores: one rule in each file.

mod failed_leaves_nothing;
mod ghosts;
mod nodes_keep;
mod nothing_below;
mod one_holder;
mod quiet;
mod tokens;

pub(super) use failed_leaves_nothing::check as failed_leaves_nothing;
pub(super) use ghosts::check as ghosts;
pub(super) use nodes_keep::check as nodes_keep;
pub(super) use nothing_below::check as nothing_below;
pub(super) use one_holder::check as one_holder;
pub(super) use quiet::check as quiet;
pub(super) use tokens::Tokens;
