//! What must hold at one Redis, besides what holds for all stores: one rule in each file.

mod cancelled;
mod one_holder;
mod outliving;
mod store_keeps;
mod tokens;

pub(super) use cancelled::check as cancelled;
pub(super) use one_holder::{Outsider, check as one_holder};
pub(super) use outliving::check as outliving;
pub(super) use store_keeps::check as store_keeps;
pub(super) use tokens::Tokens;
