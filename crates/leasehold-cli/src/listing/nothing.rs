//! Messages if there is nothing to show.

use std::io::stdout;

use crate::args::{LsArgs, StoreArgs};
use crate::screen::beside;
use crate::store::{Origin, Store};

/// No lock to list.
pub(super) fn nothing_held(args: &LsArgs) -> String {
    let pattern = &args.pattern;
    let what = if pattern == "*" { "no lock is held".to_owned() } else { format!("no held lock matches {pattern:?}") };
    nothing(&what, &args.store)
}

/// The same with the store, since another one may have been meant.
pub(super) fn nothing(what: &str, store: &StoreArgs) -> String {
    let chosen = Store::choose(store.url.as_deref()).ok().and_then(|store| store.config().ok());
    let place = chosen.map_or_else(String::new, |config| format!(" in {}", config.shown()));
    let hint =
        if store.origin() == Origin::Default { "; for another store, give --url or set LEASEHOLD_URL" } else { "" };
    beside(0, &format!("{what}{place}{hint}"), &stdout())
}
