//! `leasehold run` and `leasehold elect`: a command under a lock.

mod budget;
mod channel;
mod child;
mod elect;
mod failures;
pub(crate) mod front;
mod group;
pub(crate) mod guard;
mod leaving;
mod lookup;
mod obstacle_lookup;
mod process;
pub(crate) mod signals;
mod spinner;
pub(crate) mod start;
mod store_errors;
mod supervise;
mod task;
mod terminal;
mod tty;
mod usable;
mod wait;
mod watch;
mod wire;

use std::ffi::{OsStr, OsString};

use leasehold::backend::Reach;
use leasehold::clock::{Clock, HostClock};
use leasehold::kit::Budget;
use leasehold::{Error, Ttl};

use self::child::{Child, Plan};
use self::failures::{Stop, lost, unguardable};
use self::lookup::cannot_execute;
use self::signals::Signals;
use self::supervise::{CommandResult, Supervisor};
pub(crate) use self::task::Task;
use self::terminal::{Terminal, User};
use self::usable::usable_deadline;
use self::wait::WaitCall;
use crate::args::work::WorkArgs;
use crate::command_end::CommandEnd;
use crate::durations::{millis, rough};
use crate::exit::{Exit, Failure};
use crate::held::{HELD, Held};
use crate::hold::{End, Hold};
use crate::lock_request::LockRequest;
use crate::locks::Locks;
use crate::report::{Report, Voice};
use crate::secret::Exposed;
use crate::store::Store;

/// Runs the command under the lock and says how it ended.
pub(crate) fn run(task: Task<'_>) -> Exit {
    // If no worker can be started, this process does the work, or reports why it cannot.
    let stood = if front::is_needed() { front::stand().ok() } else { None };
    stood.unwrap_or_else(|| work(task, None))
}

/// The same, as the worker behind a front.
pub(crate) fn run_behind(front: u32, task: Task<'_>) -> Exit {
    match front::home(front) {
        Some(home) => {
            tty::write_from_background();
            work(task, Terminal::of_job(home).as_ref())
        }
        None => Exit::Internal,
    }
}

fn work(task: Task<'_>, terminal: Option<&Terminal>) -> Exit {
    let args = task.work();
    let mut voice = Voice::new(args.tone(), args.log());
    let mut report = Report { name: args.name.to_string(), ..Report::default() };
    let outcome = args.report.as_deref().map_or(Ok(()), |path| voice.report_to(path));
    let outcome = outcome.and_then(|()| Session::prepare(task, terminal, &mut voice, &mut report));
    let outcome = outcome.and_then(|session| match task {
        Task::Run(_) => session.run(),
        Task::Elect(_) => session.elect(),
    });
    let exit = outcome.unwrap_or_else(|failure| {
        report.schedule.skipped = failure.skipped.as_deref().map(Into::into);
        report.message = Some(failure.message);
        failure.exit
    });
    voice.close(report, exit);
    exit
}

/// One run: its options, and its report.
struct Session<'a> {
    task: Task<'a>,
    args: &'a WorkArgs,
    request: LockRequest,
    /// How long leases last.
    ttl: Ttl,
    budget: Budget,
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
        task: Task<'a>,
        terminal: Option<&'a Terminal>,
        voice: &'a mut Voice,
        report: &'a mut Report,
    ) -> Result<Self, Failure> {
        let args = task.work();
        let budget = budget::divide(args.ttl, args.grace)?;
        let request = task.request(budget)?;
        report.schedule.job_slot = request.job.slot.map(|slot| slot.to_string());
        process::our_program().map_err(|error| unguardable(&error))?;
        signals::survive_file_limit().map_err(|error| Failure::system("cannot catch signals", error))?;
        let store = Store::choose(args.store.url.as_deref())?.shared()?;
        let held = Held::from_env();
        let signals = Signals::forwarded().map_err(|error| Failure::system("cannot catch signals", error))?;
        let user = User::Others;
        let session =
            Self { task, args, request, ttl: args.ttl, budget, store, held, signals, terminal, user, voice, report };
        session.look_up_command()?;
        session.name_store()
    }

    /// Says which store excludes, and warns of one that machines do not share where they are meant to meet.
    fn name_store(self) -> Result<Self, Failure> {
        let config = self.store.config()?;
        let store = config.shown();
        self.voice.tell_store(&format!("the store is {store}, {}", self.args.store.origin()));
        if let Some(Exposed { problem, remedy }) = self.args.store.exposed() {
            self.voice.tell_store(&format!("{problem}; {remedy}"));
        }
        if let (Reach::Machine, Some(each)) = (config.reach(), self.task.apart()) {
            self.voice.warn(&format!(
                "{store} excludes this machine's processes only, so each machine {each}; give all of them one store, such as \
                 --url redis://HOST"
            ));
        }
        self.report.store = Some(store);
        Ok(self)
    }

    fn look_up_command(&self) -> Result<(), Failure> {
        let Some(program) = self.args.command.first() else { return Ok(()) };
        lookup::look_up(program, std::env::var_os("PATH").as_deref()).map_err(|error| cannot_execute(program, &error))
    }

    fn run(mut self) -> Result<Exit, Failure> {
        self.once().map_err(|(Stop::Lost(failure) | Stop::Failed(failure))| failure)
    }

    /// Acquires the lock, and runs the command under it.
    fn once(&mut self) -> Result<Exit, Stop> {
        let began = HostClock.now();
        let acquired = self.acquire();
        let got = HostClock.now();
        self.report.waited_ms = millis(got.since(began));
        let (locks, hold) = acquired?;
        self.ttl = locks.client().capabilities().shortened(self.args.ttl);
        self.budget = Budget::divide(self.ttl, self.args.grace);
        self.report.token = Some(hold.token().get());
        self.report.slot = hold.slot();
        let waited = rough(got.since(began));
        self.voice.note(&format!("got {} with token {} after {waited}", self.args.name, hold.token()));
        if let Task::Elect(_) = self.task {
            self.voice.tell_elected(&self.args.name, hold.token());
        }
        self.look_back(&hold);
        let result = self.run_command(&hold);
        let end = leaving::end(&self.request.job, &result);
        let overrun = self.request.job.overrun(HostClock.now().since(got), budget::end_of_run(self.budget));
        let result = result.map(|result| leaving::explain(result, overrun));
        if let Some(reason) = result.as_ref().ok().and_then(CommandResult::loss) {
            self.voice.log_loss(&self.args.name, hold.token(), HostClock.now().since(got), reason);
        }
        let released = self.release(&locks, hold, end);
        self.report.held_ms = Some(millis(HostClock.now().since(got)));
        let exit = self.judge(result.map_err(Stop::before_start)?)?;
        Ok(released.map(|()| exit)?)
    }

    /// Says which earlier slots nobody has run.
    fn look_back(&mut self, hold: &Hold) {
        let missed = hold.missed();
        leaving::warn_of_missed(&self.report.name, &missed, self.voice);
        self.report.schedule.missed = missed.iter().map(ToString::to_string).collect();
    }

    fn acquire(&mut self) -> Result<(Locks, Hold), Failure> {
        let request = self.request.clone();
        let (store, held, log) = (self.store.clone(), self.held.clone(), self.voice.log());
        let grace = self.args.grace;
        wait::acquire(WaitCall { store, request, held, log, grace }, &mut self.signals, self.terminal, self.voice)
    }

    fn run_command(&mut self, hold: &Hold) -> Result<CommandResult, Failure> {
        let deadline = usable_deadline(hold, self.ttl, self.budget, &mut self.signals)?;
        let plan = Plan {
            command: &self.args.command,
            environment: self.environment(hold),
            budget: self.budget,
            foreground: self.terminal.and_then(Terminal::lend_at_start),
        };
        let child = Child::start(&plan, deadline).map_err(|error| Failure::system("cannot start the guard", error))?;
        let (signals, terminal) = (&mut self.signals, self.terminal);
        let result = Supervisor::new(child, deadline, self.budget, hold, signals, terminal, self.voice).watch();
        self.user = terminal.map_or(User::Others, Terminal::take_back);
        Ok(result)
    }

    fn environment(&self, hold: &Hold) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("LEASEHOLD_NAME", Some(self.args.name.to_string())),
            ("LEASEHOLD_FENCE", Some(hold.token().to_string())),
            ("LEASEHOLD_TTL_MS", Some(self.ttl.as_millis().to_string())),
            ("LEASEHOLD_SLOT", hold.slot().map(|slot| slot.to_string())),
            (HELD, Some(self.held.with(&self.args.name, hold.token()))),
        ]
    }

    /// Releases the lock. A lease that is found to be lost may have been lost before the command ended.
    fn release(&mut self, locks: &Locks, hold: Hold, end: End) -> Result<(), Failure> {
        let token = hold.token();
        let (released, slot) = hold.end(end);
        let told = leaving::tell_slot(end, slot, self.voice);
        match released {
            Err(Error::Lost(lease)) => Err(lost(&lease.reason.to_string())),
            // It is repeated while this process lives, for example if the connection had broken.
            Err(_) if leaving::is_over_soon(locks, &self.args.name, token) => {
                self.voice.note(&format!("released {} on a retry", self.args.name));
                told
            }
            Ok(()) => {
                self.voice.note(&format!("released {}", self.args.name));
                told
            }
            Err(error) => {
                self.voice.warn_afterwards(&leaving::unreleased(&self.args.name, &self.ttl, &error.to_string()));
                told
            }
        }
    }

    fn judge(&mut self, result: CommandResult) -> Result<Exit, Stop> {
        let failure = match result {
            CommandResult::Ended(end) => return Ok(self.ended(end)),
            CommandResult::Lost(reason) => return Err(Stop::Lost(lost(&reason))),
            CommandResult::Unreported => Failure::new(
                Exit::Lost,
                "the lease was lost and the command was killed, but its end was not seen in time; check with ps whether it still runs",
            ),
            CommandResult::Refused(error) => {
                let program = self.args.command.first().map_or_else(|| OsStr::new(""), OsString::as_os_str);
                cannot_execute(program, &error)
            }
            CommandResult::Unguarded => {
                Failure::new(Exit::Internal, "the guard process died, so the command was killed; run it again")
            }
        };
        Err(failure.into())
    }

    fn ended(&mut self, end: CommandEnd) -> Exit {
        self.report.command = Some(end);
        match end {
            CommandEnd::Code(code) => Exit::Command(code),
            CommandEnd::Signal(signal) if self.was_meant_for_us(signal) => Exit::SignalledAlike(signal),
            CommandEnd::Signal(signal) => Exit::Signalled(signal),
        }
    }

    /// Whether the signal that ended the command was meant for the whole job: this process received it, too, or it was typed
    /// while the command had the terminal. In the second case, the rest of the job, such as a shell script, is sent it now.
    fn was_meant_for_us(&mut self, signal: i32) -> bool {
        self.signals.has_had(signal)
            || self.user == User::Command && self.terminal.is_some_and(|terminal| terminal.signal_job_if_typed(signal))
    }
}
