//! `leasehold watch`.

mod following;
mod line;

use std::io::{self, ErrorKind, Write};

use anstream::AutoStream;

use self::following::{Change, Following};
use self::line::{Line, text};
use crate::args::WatchArgs;
use crate::exit::{Exit, Failure};
use crate::poller::{Next, Poller, pause};
use crate::report::{json, say_note};
use crate::visible::{unhidden, visible};

/// Prints what happens, until a signal ends it or nobody reads any more.
pub(crate) fn watch(args: &WatchArgs) -> Result<Exit, Failure> {
    let mut following = Following::begin(Poller::begin(args.store.url.as_deref(), &args.pattern)?)?;
    let mut changes = following.already();
    if changes.is_empty() && !args.json {
        say_note(&format!("no held lock matches \"{}\" yet; watching", args.pattern));
    }
    loop {
        for change in &changes {
            if print(args, change)? == Next::End {
                return Ok(Exit::Done);
            }
        }
        if pause(following.pause(args.every.every)) == Next::End {
            return Ok(Exit::Done);
        }
        changes = following.again()?;
    }
}

fn print(args: &WatchArgs, change: &Change) -> Result<Next, Failure> {
    let line = if args.json { json(&Line::from(change))? } else { visible(&text(change)).into_owned() };
    let mut out = AutoStream::auto(io::stdout()).lock();
    match writeln!(out, "{}", unhidden(&line)).and_then(|()| out.flush()) {
        Ok(()) => Ok(Next::Again),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Next::End),
        Err(error) => Err(Failure::unprinted(&error)),
    }
}
