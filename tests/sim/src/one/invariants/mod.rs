//! What must hold at one server, besides what holds for all stores: one rule in each file.

mod arrivals;
mod cancelled;
mod store_keeps;
mod together;
mod tokens;

pub(super) use arrivals::Arrivals;
pub(super) use cancelled::check as cancelled;
pub(super) use store_keeps::check as store_keeps;
pub(super) use together::Outsider;
pub(crate) use together::check as together;
pub(crate) use tokens::Tokens;
