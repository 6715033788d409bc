//! What must hold at the reference store, besides what holds for all stores: one rule in each file.

mod arrivals;
mod outliving;
mod store_keeps;
mod together;
mod tokens;

pub(super) use arrivals::Arrivals;
pub(super) use outliving::check as outliving;
pub(super) use store_keeps::check as store_keeps;
pub(super) use together::check as together;
pub(super) use tokens::Tokens;
