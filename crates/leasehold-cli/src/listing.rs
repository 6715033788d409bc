//! `leasehold ls` and `leasehold show`.

mod live;
mod nothing;
mod order;
mod page;
mod row;
mod shown;
mod words;

use std::io::stdout;

use self::nothing::{nothing, nothing_held};
use self::page::page;
use self::row::free;
pub(crate) use self::row::{Lease, row};
use self::shown::{shown_as_json, sorted, table};
pub(crate) use self::words::slots;
use crate::args::{LsArgs, ShowArgs};
use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::poller::Poller;
use crate::report::{json, print};
use crate::screen::width;
use crate::store::Store;

/// Lists what is held.
pub(crate) fn ls(args: &LsArgs) -> Result<Exit, Failure> {
    if args.watch {
        return live::watch(args);
    }
    let poller = Poller::begin(args.store.url.as_deref(), &args.pattern)?;
    let entries = sorted(poller.first()?.entries(), args.sort);
    match (args.json, entries.is_empty()) {
        (true, _) => print(&shown_as_json(&entries)?),
        (false, true) => print(&nothing_held(args)),
        (false, false) => print(&table(&entries, poller.endless()).to_string()),
    }
}

/// Shows one lock.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let locks = Locks::connect_to_look(&Store::choose(args.store.url.as_deref())?)?;
    let entry = locks.holder(&args.name)?;
    if args.json {
        let row = entry.as_ref().map_or_else(|| free(&args.name), row);
        return print(&json(&row)?);
    }
    match entry {
        Some(entry) => print(&page(&entry, locks.endless(), width(stdout()))),
        None => print(&nothing(&format!("lock {:?} is not held", args.name.as_str()), &args.store)),
    }
}
