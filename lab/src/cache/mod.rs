//! `cargo xtask lab cache`: many callers miss a cache at the same time.
//!
//! Reading order: `stages` (the story) · `stage` (what they are made of) · `caller` (how it gets a value) · `shelf` (the cache) ·
//! `database` (which counts its calls) · `story` (how it is told).

mod caller;
mod database;
mod shelf;
mod stage;
mod stages;
mod story;

use self::stage::Callers;
use crate::args::CacheArgs;
use crate::shared::failure::Failure;
use crate::shared::story::tell;
use crate::shared::tell::Form;

/// Tells the whole story.
pub(crate) fn run(args: &CacheArgs) -> Result<(), Failure> {
    tell(&Callers { callers: args.callers }, args.url.as_deref(), if args.json { Form::Json } else { Form::Text })
}
