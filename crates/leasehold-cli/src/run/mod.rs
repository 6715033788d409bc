//! `leasehold run`: a command under a lock.

mod budget;
mod channel;
mod child;
mod failures;
pub(crate) mod front;
mod group;
pub(crate) mod guard;
mod leaving;
mod lookout;
mod lookup;
mod process;
pub(crate) mod signals;
mod spinner;
pub(crate) mod start;
mod supervise;
mod terminal;
mod troubles;
mod tty;
mod usable;
mod wait;
mod watch;
mod wire;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use lock_core::{Budget, Fairness};
use lock_host::{Clock, HostClock};
use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGQUIT};

use self::child::{Child, Plan};
use self::failures::{lost, unguardable};
use self::lookup::cannot_execute;
use self::signals::Signals;
use self::supervise::{Supervisor, Verdict};
use self::terminal::{Terminal, User};
use self::usable::usable_deadline;
use self::wait::Request;
use self::wire::Status;
use crate::args::RunArgs;
use crate::durations::{millis, rough};
use crate::exit::{Exit, Failure};
use crate::held::{HELD, Held};
use crate::hold::{Hold, Parted};
use crate::job::Job;
use crate::locks::Locks;
use crate::log::{Form, Log};
use crate::report::{CommandEnd, Report, Tone, Voice};
use crate::store::Store;
use crate::wish::{Patience, Wish};

/// What the terminal sends for Ctrl-C and Ctrl-\.
const TYPED: [i32; 2] = [SIGINT, SIGQUIT];

/// Runs the command under the lock and says how it ended.
pub(crate) fn run(args: &RunArgs) -> Exit {
    // If no worker can be started, this process does the work, or reports why it cannot.
    let stood = if front::is_needed() { front::stand().ok() } else { None };
    stood.unwrap_or_else(|| work(args, None))
}

/// The same, as the worker behind a front.
pub(crate) fn run_behind(front: u32, args: &RunArgs) -> Exit {
    match front::home(front) {
        Some(home) => {
            tty::write_from_background();
            work(args, Terminal::of_job(home).as_ref())
        }
        None => Exit::Internal,
    }
}

fn work(args: &RunArgs, terminal: Option<&Terminal>) -> Exit {
    let mut voice = Voice::new(tone(args), log(args));
    let mut report = Report { name: args.name.to_string(), ..Report::default() };
    let outcome = args.report.as_deref().map_or(Ok(()), |path| voice.report_to(path));
    let outcome =
        outcome.and_then(|()| Session::prepare(args, terminal, &mut voice, &mut report)).and_then(Session::run);
    let exit = outcome.unwrap_or_else(|failure| {
        report.schedule.skipped = failure.skipped.as_deref().map(Into::into);
        report.message = Some(failure.message);
        failure.exit
    });
    voice.close(report, exit);
    exit
}

fn log(args: &RunArgs) -> Option<Arc<Log>> {
    match tone(args) {
        Tone::Quiet => None,
        Tone::Normal | Tone::Verbose => Log::new(args.log, Form::Text),
        Tone::Json => Log::new(args.log, Form::Json),
    }
}

fn tone(args: &RunArgs) -> Tone {
    match (args.json, args.quiet, args.verbose) {
        (true, _, _) => Tone::Json,
        (false, true, _) => Tone::Quiet,
        (false, false, true) => Tone::Verbose,
        (false, false, false) => Tone::Normal,
    }
}

/// One run: its options, and its report.
struct Session<'a> {
    args: &'a RunArgs,
    budget: Budget,
    job: Job,
    store: Store,
    held: Held,
    signals: Signals,
    terminal: Option<&'a Terminal>,
    /// Who had the terminal when the command ended.
    user: User,
    voice: &'a mut Voice,
    report: &'a mut Report,
}

impl<'a> Session<'a> {
    /// Refuses what cannot work, before anything is changed.
    fn prepare(
        args: &'a RunArgs,
        terminal: Option<&'a Terminal>,
        voice: &'a mut Voice,
        report: &'a mut Report,
    ) -> Result<Self, Failure> {
        let budget = budget::divide(args.ttl, args.grace)?;
        let job = args.job.job(&args.name, budget::shortest_run(budget))?;
        process::our_program().map_err(|error| unguardable(&error))?;
        signals::survive_file_limit().map_err(|error| Failure::system("cannot catch signals", error))?;
        let store = Store::choose(args.store.url.as_deref())?.shared()?;
        let held = Held::from_env();
        let signals = Signals::forwarded().map_err(|error| Failure::system("cannot catch signals", error))?;
        let user = User::Others;
        let session = Self { args, budget, job, store, held, signals, terminal, user, voice, report };
        session.look_up_command()?;
        Ok(session)
    }

    fn look_up_command(&self) -> Result<(), Failure> {
        let Some(program) = self.args.command.first() else { return Ok(()) };
        lookup::look_up(program, std::env::var_os("PATH").as_deref()).map_err(|error| cannot_execute(program, &error))
    }

    fn run(mut self) -> Result<Exit, Failure> {
        let began = HostClock.now();
        let acquired = self.acquire();
        let got = HostClock.now();
        self.report.waited_ms = millis(got.since(began));
        let (locks, mut hold) = acquired?;
        self.report.token = Some(hold.token().get());
        self.report.slot = hold.slot();
        let waited = rough(got.since(began));
        self.voice.note(&format!("got {} with token {} after {waited}", self.args.name, hold.token()));
        let begun = hold.begin().map(|()| self.look_back(&locks));
        let verdict = begun.and_then(|()| self.run_command(&hold));
        let overrun = self.job.overrun(HostClock.now().since(got), budget::end_of_run(self.budget));
        let (verdict, slotted) = leaving::settle(&mut hold, &self.job, verdict, overrun);
        let marked = slotted.map(|slotted| leaving::free(slotted, &locks, self.voice));
        if let Some(reason) = verdict.as_ref().ok().and_then(Verdict::loss) {
            self.voice.log_loss(&self.args.name, hold.token(), HostClock.now().since(got), reason);
        }
        let released = self.release(&locks, hold);
        self.report.held_ms = Some(millis(HostClock.now().since(got)));
        match self.judge(verdict?) {
            Ok(exit) => released.and(marked).map(|()| exit),
            failed => failed,
        }
    }

    /// Says which earlier slots nobody has run.
    fn look_back(&mut self, locks: &Locks) {
        let missed = locks.missed(&self.job);
        leaving::warn_of_missed(&self.report.name, &missed, self.voice);
        self.report.schedule.missed = missed.iter().map(ToString::to_string).collect();
    }

    fn acquire(&mut self) -> Result<(Locks, Hold), Failure> {
        let patience = match (self.args.no_wait, self.args.wait) {
            (true, _) | (false, Some(Duration::ZERO)) => Patience::None,
            (false, Some(limit)) => Patience::Until(limit),
            (false, None) => Patience::Endless,
        };
        let wish = Wish {
            name: self.args.name.clone(),
            mode: self.args.mode.mode(),
            ttl: self.args.ttl,
            why: self.args.why.clone(),
            patience,
            fairness: if self.args.barging { Fairness::Barging } else { Fairness::Fair },
            busy_code: self.args.busy_code,
            job: self.job.clone(),
        };
        let (store, held, log) = (self.store.clone(), self.held.clone(), self.voice.log());
        wait::acquire(Request { store, wish, held, log }, &mut self.signals, self.terminal, self.voice)
    }

    fn run_command(&mut self, hold: &Hold) -> Result<Verdict, Failure> {
        let deadline = usable_deadline(hold, self.args.ttl, self.budget, &mut self.signals)?;
        let plan = Plan {
            command: &self.args.command,
            environment: self.environment(hold),
            budget: self.budget,
            foreground: self.terminal.and_then(Terminal::lend_at_start),
        };
        let child = Child::start(&plan, deadline).map_err(|error| Failure::system("cannot start the guard", error))?;
        let (signals, terminal) = (&mut self.signals, self.terminal);
        let verdict = Supervisor::new(child, deadline, self.budget, hold, signals, terminal, self.voice).watch();
        self.user = terminal.map_or(User::Others, Terminal::take_back);
        Ok(verdict)
    }

    fn environment(&self, hold: &Hold) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("LEASEHOLD_NAME", Some(self.args.name.to_string())),
            ("LEASEHOLD_FENCE", Some(hold.token().to_string())),
            ("LEASEHOLD_TTL_MS", Some(self.args.ttl.as_millis().to_string())),
            ("LEASEHOLD_SLOT", hold.slot().map(|slot| slot.to_string())),
            (HELD, Some(self.held.with(&self.args.name, hold.token()))),
        ]
    }

    /// Releases the lock. A lease that is found to be lost may have been lost before the command ended.
    fn release(&mut self, locks: &Locks, hold: Hold) -> Result<(), Failure> {
        let token = hold.token();
        match hold.release() {
            // It is repeated while this process lives, for example if the connection had broken.
            Parted::Unknown(_) if leaving::is_over_soon(locks, &self.args.name, token) => {
                self.voice.note(&format!("released {} on a retry", self.args.name));
                Ok(())
            }
            Parted::Released => {
                self.voice.note(&format!("released {}", self.args.name));
                Ok(())
            }
            Parted::AlreadyLost(reason) => Err(lost(&reason)),
            Parted::Unknown(problem) => {
                self.voice.warn_afterwards(&format!(
                    "{} may not have been released: {problem}; if so, it expires within {}",
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
                "the lease was lost and the command was killed, but its end was not seen in time; check with ps whether it still runs",
            )),
            Verdict::Refused(error) => {
                let program = self.args.command.first().map_or_else(|| OsStr::new(""), OsString::as_os_str);
                Err(cannot_execute(program, &error))
            }
            Verdict::Unguarded => {
                Err(Failure::new(Exit::Internal, "the guard process died, so the command was killed; run it again"))
            }
        }
    }

    fn ended(&mut self, status: Status) -> Exit {
        match status {
            Status::Code(code) => {
                self.report.command = Some(CommandEnd::Code(code));
                Exit::Command(code)
            }
            Status::Signal(signal) => {
                self.report.command = Some(CommandEnd::Signal(signal));
                if self.was_meant_for_us(signal) { Exit::SignalledAlike(signal) } else { Exit::Signalled(signal) }
            }
        }
    }

    /// Whether the signal that ended the command was meant for the whole job: this process received it, too, or it was typed
    /// while the command had the terminal. In the second case, the rest of the job, such as a shell script, is sent it now.
    fn was_meant_for_us(&mut self, signal: i32) -> bool {
        if self.signals.has_had(signal) {
            return true;
        }
        let typed = Signal::from_named_raw(signal).filter(|_| TYPED.contains(&signal) && self.user == User::Command);
        if let (Some(signal), Some(terminal)) = (typed, self.terminal) {
            terminal.signal_job(signal);
        }
        typed.is_some()
    }
}
