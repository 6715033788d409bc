//! `leasehold watch`.

mod events;
mod line;

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use anstream::AutoStream;
use lock_host::{Clock, HostClock};

use self::events::{Change, State, Vanished, Way};
use self::line::{Line, text};
use crate::args::WatchArgs;
use crate::broken::broken_by;
use crate::exit::{Exit, Failure};
use crate::looks::{Looks, Next, pause};
use crate::report::{json, say_note};

/// The shortest pause before a lease is about to end. Chosen: so that it is seen whether it was renewed.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// How many times as long as a look the pause after it is at least, unless `--every` is shorter. Chosen: so that the store is busy with
/// looks for a tenth of the time.
const PAUSE_PER_LOOK: u32 = 9;

/// Prints what happens, until a signal ends it or nobody reads any more.
pub(crate) fn watch(args: &WatchArgs) -> Result<Exit, Failure> {
    let mut looks = Looks::begin(args.store.url.as_deref(), &args.pattern)?;
    let mut state = State::of(looks.first()?);
    let mut changes = state.already();
    if changes.is_empty() && !args.json {
        say_note(&format!("no held lock matches {:?} yet; watching", args.pattern));
    }
    let mut pause_for = until_next(args.every.every, state.next_end(), Duration::ZERO);
    loop {
        for change in &changes {
            if print(args, change)? == Next::End {
                return Ok(Exit::Done);
            }
        }
        if pause(pause_for) == Next::End {
            return Ok(Exit::Done);
        }
        let began = HostClock.now();
        let look = looks.again()?;
        let took = HostClock.now().since(began);
        let Some(next) = look.map(State::of) else {
            (changes, pause_for) = (Vec::new(), args.every.every);
            continue;
        };
        let mut answers = true;
        changes = state.compare(&next, |vanished| way(&looks, vanished, &mut answers));
        pause_for = until_next(args.every.every, next.next_end(), took);
        state = next;
    }
}

/// How long to pause after a look that took this long. A lease that is about to end shortens the pause, but not so far that many
/// looks keep the store busy.
fn until_next(every: Duration, next_end: Option<Duration>, took: Duration) -> Duration {
    let least = took.saturating_mul(PAUSE_PER_LOOK).max(PAUSE_MIN);
    next_end.map_or(every, |end| (end / 2).max(least).min(every))
}

/// How a lease ended that is not there any more. A store that stops answering is asked no more: there may be thousands of such
/// leases, and each question takes as long as the store is given.
fn way(looks: &Looks, vanished: &Vanished<'_>, answers: &mut bool) -> Way {
    let ask = |token| broken_by(looks.locks(), vanished.name, token);
    let broken = vanished.token().filter(|_| *answers).map_or(Ok(None), ask);
    *answers &= broken.is_ok();
    match broken {
        Ok(Some(by)) => Way::Broken(by),
        _ if looks.was_away() || !*answers => Way::Ended,
        _ if vanished.ended_early() => Way::Released,
        _ => Way::Lost,
    }
}

fn print(args: &WatchArgs, change: &Change) -> Result<Next, Failure> {
    let line = if args.json { json(&Line::from(change))? } else { text(change) };
    let mut out = AutoStream::auto(io::stdout()).lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(Next::Look),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Next::End),
        Err(error) => Err(Failure::system("cannot write to standard output", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_about_to_end_shortens_the_pause_but_looks_that_take_long_do_not_follow_each_other() {
        let pause = |end: Option<u64>, took| {
            until_next(Duration::from_secs(10), end.map(Duration::from_millis), Duration::from_millis(took)).as_millis()
        };
        assert_eq!(pause(None, 0), 10_000);
        assert_eq!((pause(Some(2000), 1), pause(Some(0), 1), pause(Some(60_000), 1)), (1000, 50, 10_000));
        assert_eq!((pause(Some(0), 600), pause(Some(0), 60_000)), (5400, 10_000));
    }
}
