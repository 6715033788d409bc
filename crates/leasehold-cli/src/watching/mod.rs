//! `leasehold watch`.

mod line;

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use anstream::AutoStream;
use leasehold::inspect::{Watch, watch};

use self::line::{Event, line, text};
use crate::args::WatchArgs;
use crate::exit::{Exit, Failure};
use crate::poller::{Poller, pause};
use crate::report::{Next, json, say_note, written};
use crate::visible::{unhidden, visible};

/// Prints what happens, until a signal ends it or nobody reads any more.
pub(crate) fn watch(args: &WatchArgs) -> Result<Exit, Failure> {
    let mut poller = Poller::begin(args.store.url.as_deref(), &args.pattern)?;
    let mut watch = Watch::new(poller.first()?);
    let mut changes = watch::changes(&[], watch.last().entries(), Duration::ZERO);
    let mut already = true;
    if changes.is_empty() && !args.json {
        say_note(&format!("no held lock matches \"{}\" yet; watching", args.pattern));
    }
    loop {
        let time = SystemTime::now();
        for change in &changes {
            if print(args, &Event { time, already, change })? == Next::End {
                return Ok(Exit::Done);
            }
        }
        if pause(watch.pause(args.every.every)) == Next::End {
            return Ok(Exit::Done);
        }
        (changes, already) = (poller.changes(&mut watch)?, false);
    }
}

fn print(args: &WatchArgs, event: &Event<'_>) -> Result<Next, Failure> {
    let line = if args.json { json(&line(event))? } else { visible(&text(event)).into_owned() };
    let mut out = AutoStream::auto(io::stdout()).lock();
    written(writeln!(out, "{}", unhidden(&line)).and_then(|()| out.flush()))
}
