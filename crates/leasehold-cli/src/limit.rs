//! `leasehold limit`.

use leasehold::ErrorKind;
use leasehold::backend::Limit;
use leasehold::error::LimitError;
use leasehold::inspect::Mode;
use serde::Serialize;

use crate::args::LimitArgs;
use crate::exit::{Exit, Failure};
use crate::listing::slots;
use crate::locks::Locks;
use crate::report::{json, print};
use crate::store::Store;

/// A limit that was set.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    name: &'a str,
    /// The limit in force before; null if it is not known.
    old: Option<u32>,
    new: u32,
}

/// Changes the limit of a semaphore.
pub(crate) fn limit(args: &LimitArgs) -> Result<Exit, Failure> {
    let locks = Locks::connect(&Store::choose(args.store.url.as_deref())?.shared()?)?;
    let in_use = in_use(&locks, args)?;
    let changed = Changed { name: args.name.as_str(), old: before(&locks, in_use, args)?, new: args.limit.get() };
    let known = args.from.or(in_use).unwrap_or(args.limit);
    locks.semaphore(&args.name, known).set_limit(changed.new).map_err(failure)?;
    if args.json { print(&json(&changed)?) } else { print(&sentence(&changed, args.from)) }
}

/// A limit under which slots are held, if any are.
fn in_use(locks: &Locks, args: &LimitArgs) -> Result<Option<Limit>, Failure> {
    let Some(entry) = locks.holder(&args.name)? else { return Ok(None) };
    Ok(entry.holders.iter().find_map(|held| held.mode.limit()))
}

/// The limit in force, if the store knows one.
fn before(locks: &Locks, in_use: Option<Limit>, args: &LimitArgs) -> Result<Option<u32>, Failure> {
    let known = in_use.or(args.from).unwrap_or(args.limit);
    match locks.semaphore(&args.name, known).limit() {
        // If the store knows none, it answers with ours.
        Ok(limit) => Ok(Some(limit).filter(|limit| in_use.is_some() || *limit != known.get())),
        // Ours is not among those that were replaced; or the name is used as a lock, which is reported when the limit is set.
        Err(LimitError::Backend(error)) if error.kind() == ErrorKind::OtherKind => {
            Ok(error.used_as().and_then(Mode::limit).map(Limit::get))
        }
        Err(error) => Err(failure(error)),
    }
}

fn sentence(Changed { name, old, new }: &Changed<'_>, from: Option<Limit>) -> String {
    let others = from.filter(|from| Some(from.get()) != *old);
    let also = others.map(|from| format!(", also for commands with --slots {from}")).unwrap_or_default();
    let now = slots(*new);
    match (old, from) {
        (Some(old), _) if old == new => format!("{name} has {now}, as before{also}"),
        (Some(old), _) => format!("{name} has {now} now{also}; before, it had {old}"),
        (None, Some(_)) => format!("{name} has {now} now{also}"),
        (None, None) => format!(
            "{name} has {now} now; no slot is held, so the number before is not known; if your programs give another \
             number than {new}, run this again with --from and their number"
        ),
    }
}

fn failure(error: LimitError) -> Failure {
    match error {
        LimitError::Invalid(invalid) => Failure::usage(&invalid),
        LimitError::Backend(error) => error.into(),
        LimitError::Closed | _ => Failure::new(Exit::Internal, error.to_string()),
    }
}
