//! `leasehold demo`: shows what goes wrong without each part of a lock.
//!
//! `account` and `cache` are stories with their stages. What stories share: `place`, `raw` (a store as naive locks use it) ·
//! `ground`, `children` (where it happens, and how nothing is left behind) · `chart`, `tell` (how it is told).

pub(crate) mod account;
pub(crate) mod args;
mod cache;
mod chart;
mod children;
mod ground;
mod place;
mod raw;
mod tell;

use self::args::{DemoArgs, Story};
use crate::exit::{Exit, Failure};

/// Shows what was asked for.
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    match &args.story {
        Story::Account(args) => account::run(args),
        Story::Cache(args) => cache::run(args),
    }
}
