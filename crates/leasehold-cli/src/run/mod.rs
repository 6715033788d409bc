//! `leasehold run`: a command under a lock.

mod budget;
mod channel;
mod child;
mod group;
pub(crate) mod guard;
mod process;
mod signals;
mod spinner;
pub(crate) mod start;
mod supervise;
mod terminal;
mod troubles;
mod usable;
mod wait;
mod watch;
mod wire;

use std::io;
use std::path::Path;
use std::time::Duration;

use lock_host::{Clock, HostClock};

use self::budget::Budget;
pub(crate) use self::budget::smallest_ttl;
use self::child::{Child, Plan};
use self::signals::Signals;
use self::supervise::{Supervisor, Verdict};
use self::terminal::Terminal;
use self::usable::usable_deadline;
use self::wire::Status;
use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::held::{HELD, Held};
use crate::locks::{Hold, Locks, Parted, Patience, Wish};
use crate::report::{CommandEnd, Report, Tone, Voice, human, millis};
use crate::store::Store;

/// Runs the command under the lock and says how it ended.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let mut voice = Voice::new(tone(args));
    let mut report = Report { name: args.name.to_string(), ..Report::default() };
    let exit = Session::prepare(args, &mut voice, &mut report).and_then(Session::run).unwrap_or_else(|failure| {
        report.message = Some(failure.message);
        failure.exit
    });
    voice.close(report, exit);
    exit
}

fn tone(args: &RunArgs) -> Tone {
    match (args.json, args.quiet, args.verbose) {
        (true, _, _) => Tone::Json,
        (false, true, _) => Tone::Quiet,
        (false, false, true) => Tone::Verbose,
        (false, false, false) => Tone::Normal,
    }
}

/// One run: what was asked for, and what is told about it.
struct Session<'a> {
    args: &'a RunArgs,
    budget: Budget,
    store: Store,
    held: Held,
    signals: Signals,
    voice: &'a mut Voice,
    report: &'a mut Report,
}

impl<'a> Session<'a> {
    /// Refuses what cannot work, before anything is touched.
    fn prepare(args: &'a RunArgs, voice: &'a mut Voice, report: &'a mut Report) -> Result<Self, Failure> {
        let budget = Budget::new(args.ttl, args.grace)?;
        let store = Store::choose(args.store.url.as_deref())?.shared()?;
        let held = Held::from_env();
        if held.contains(&args.name, &store) {
            let message = format!(
                "{} is held by a leasehold run that this one runs under, and waiting would never end; \
                 use another name, or leave out the inner run",
                args.name
            );
            return Err(Failure::new(Exit::Busy(args.busy_code), message));
        }
        let signals = Signals::forwarded().map_err(|error| Failure::system("cannot catch signals", error))?;
        Ok(Self { args, budget, store, held, signals, voice, report })
    }

    fn run(mut self) -> Result<Exit, Failure> {
        let began = HostClock.now();
        let acquired = self.acquire();
        let got = HostClock.now();
        self.report.waited_ms = millis(got.since(began));
        let hold = acquired?;
        self.report.token = Some(hold.token().get());
        let waited = human(got.since(began));
        self.voice.note(&format!("got {} with token {} after {waited}", self.args.name, hold.token()));
        let verdict = self.run_command(&hold);
        let released = self.release(hold);
        self.report.held_ms = Some(millis(HostClock.now().since(got)));
        match self.judge(verdict?) {
            Ok(exit) => released.map(|()| exit),
            failed => failed,
        }
    }

    fn acquire(&mut self) -> Result<Hold, Failure> {
        let patience = match (self.args.no_wait, self.args.wait) {
            (true, _) | (false, Some(Duration::ZERO)) => Patience::None,
            (false, Some(limit)) => Patience::Until(limit),
            (false, None) => Patience::Endless,
        };
        let wish = Wish {
            name: self.args.name.clone(),
            ttl: self.args.ttl,
            why: self.args.why.clone(),
            patience,
            busy_code: self.args.busy_code,
        };
        let locks = Locks::connect(&self.store)?;
        for warning in locks.warnings() {
            self.voice.warn(warning);
        }
        wait::acquire(&locks, &wish, &mut self.signals, self.voice)
    }

    fn run_command(&mut self, hold: &Hold) -> Result<Verdict, Failure> {
        let terminal = Terminal::in_foreground();
        let plan = Plan {
            command: &self.args.command,
            environment: self.environment(hold),
            budget: self.budget,
            terminal: terminal.as_ref(),
        };
        let deadline = usable_deadline(hold, self.args.ttl, self.budget, &mut self.signals)?;
        let child = Child::start(&plan, deadline).map_err(|error| Failure::system("cannot start the guard", error))?;
        let (signals, terminal) = (&mut self.signals, terminal.as_ref());
        Ok(Supervisor::new(child, deadline, self.budget, hold, signals, terminal, self.voice).watch())
    }

    fn environment(&self, hold: &Hold) -> Vec<(&'static str, String)> {
        vec![
            ("LEASEHOLD_NAME", self.args.name.to_string()),
            ("LEASEHOLD_FENCE", hold.token().to_string()),
            ("LEASEHOLD_TTL_MS", self.args.ttl.as_millis().to_string()),
            (HELD, self.held.with(&self.args.name, &self.store)),
        ]
    }

    /// Releases the lock. A lease that turns out to be lost already may have been lost before the command ended.
    fn release(&mut self, hold: Hold) -> Result<(), Failure> {
        match hold.release() {
            Parted::Released => {
                self.voice.note(&format!("released {}", self.args.name));
                Ok(())
            }
            Parted::AlreadyLost(reason) => Err(lost(&reason)),
            Parted::Unknown(problem) => {
                self.voice.warn(&format!(
                    "{} may not have been released: {problem}; if so, it ends by itself within {}",
                    self.args.name, self.args.ttl
                ));
                Ok(())
            }
        }
    }

    fn judge(&mut self, verdict: Verdict) -> Result<Exit, Failure> {
        match verdict {
            Verdict::Ended(status) => Ok(self.ended(status)),
            Verdict::Lost(reason) => Err(lost(&reason)),
            Verdict::Unreported => Err(Failure::new(
                Exit::Lost,
                "the lease was lost; the command was killed but its end was not seen in time; check with ps what runs",
            )),
            Verdict::Refused(error) => Err(self.refused(&error)),
            Verdict::Unguarded => {
                Err(Failure::new(Exit::Internal, "the guard process died, so the command was killed; run it again"))
            }
        }
    }

    fn ended(&mut self, status: Status) -> Exit {
        let (end, exit) = match status {
            Status::Code(code) => (CommandEnd::Code(code), Exit::Command(code)),
            Status::Signal(signal) => (CommandEnd::Signal(signal), Exit::Signalled(signal)),
        };
        self.report.command = Some(end);
        exit
    }

    fn refused(&self, error: &io::Error) -> Failure {
        let program = self.args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        if error.kind() == io::ErrorKind::NotFound {
            let advice = if program.contains(char::is_whitespace) {
                "quote each word by itself, or use sh -c '...'"
            } else {
                "check the spelling and PATH"
            };
            let message =
                format!("there is no command {program:?}, or the interpreter in its first line is missing; {advice}");
            return Failure::new(Exit::NotFound, message);
        }
        // A name without a slash was looked for in PATH, not here.
        if program.contains('/') && Path::new(&*program).is_dir() {
            let message = format!("{program:?} is a directory and cannot be executed; name a program in it");
            return Failure::new(Exit::NotExecutable, message);
        }
        Failure::new(Exit::NotExecutable, format!("cannot execute {program:?}: {error}; make it executable"))
    }
}

fn lost(reason: &str) -> Failure {
    let message = format!(
        "the lease was lost before the command ended: {reason}; its work may be half done, and writes that carry its \
         fencing token are refused where tokens are checked"
    );
    Failure::new(Exit::Lost, message)
}
