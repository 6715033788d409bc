//! Which kind of lock `leasehold run` holds.

use clap::Args;
use leasehold::Invalid;
use leasehold::inspect::Mode;

use super::limit::limit;

/// How the lock is shared.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ModeArgs {
    /// Hold the lock alone, as a writer; this is the default.
    #[arg(short = 'x', long)]
    exclusive: bool,
    /// Hold the lock as a reader, together with other readers.
    ///
    /// Processes are served in order of arrival. A service may serve up to 17 of its own waiters in a row.
    #[arg(short, long)]
    shared: bool,
    /// Hold one of N slots of a semaphore: up to N commands run at the same time.
    ///
    /// The command receives the number of its slot, 0 to N-1, in LEASEHOLD_SLOT. All commands with this name must give the same N.
    /// While a slot is held or waited for, a command that gives another N, or uses the name as a lock, fails with exit code 78.
    #[arg(long, value_name = "N", value_parser = slots)]
    slots: Option<Mode>,
}

impl ModeArgs {
    /// The mode to ask for.
    pub(crate) fn mode(&self) -> Mode {
        self.slots.unwrap_or(if self.shared { Mode::Shared } else { Mode::Exclusive })
    }
}

fn slots(text: &str) -> Result<Mode, Invalid> {
    Mode::permits(1, limit(text)?.get())
}
