//! `cargo xtask lab NAME`: failures of locks, each played on real servers without the protection and with it, and drawn as a timeline.
//!
//! Read in this order: `scenes` (a file for each failure) · `scene` · `one_redis`, `pair`, `nodes`, `by_hand`, `sql` (plain requests) · `holder` (a
//! client of `leasehold` in a process of its own: `child`, `orders`, `holder_process`, `resource`) · `history`,
//! `recorder` (what is recorded) · `layout`, `timeline`, `markup`, `page` (how it is drawn) · `play`.

mod by_hand;
mod child;
mod history;
mod holder;
pub(crate) mod holder_process;
mod layout;
mod markup;
mod nodes;
mod one_redis;
mod orders;
mod page;
mod pair;
pub(crate) mod play;
mod recorder;
mod resource;
pub(crate) mod scene;
pub(crate) mod scenes;
mod sql;
mod timeline;
