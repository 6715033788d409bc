//! Arguments of the command that runs, whatever it waits for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use leasehold::clock::parse_duration;
use leasehold::inspect::Note;
use leasehold::kit::Budget;
use leasehold::{BackendConfig, Invalid, LockName, Ttl};

use super::store::StoreArgs;
use crate::durations::{duration, whole_seconds_up};
use crate::log::{Form, Log, LogLevel};
use crate::report::Tone;

/// The command, its lock, and what is said about both.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// How long the store keeps the lock if this machine stops renewing it.
    #[arg(long, value_name = "DURATION", default_value_t = Ttl::DEFAULT, value_parser = ttl, help = ttl_help())]
    pub(crate) ttl: Ttl,
    /// Time between SIGTERM and SIGKILL when the lease is lost [default: a sixth of the ttl, at most 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration("grace"))]
    pub(crate) grace: Option<Duration>,
    /// Why the lock is held; shown to waiters and operators [env: LEASEHOLD_WHY]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = why)]
    pub(crate) why: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print no messages at all.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print each step.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print JSON instead of messages on standard error; the last line is the outcome.
    ///
    /// Each store error during the wait is reported on an earlier line with the outcome "waiting". If the command also
    /// writes to standard error, use --report.
    #[arg(long)]
    pub(crate) json: bool,
    /// Log events of the lock on standard error: off, error, warn, info or debug. Each level includes those before it.
    ///
    /// With --json, lines are JSON with the outcome "log". With --quiet, nothing is logged. At debug, -v adds nothing.
    #[arg(long, value_name = "LEVEL", env = "LEASEHOLD_LOG", hide_env_values = true, default_value = "off")]
    pub(crate) log: LogLevel,
    /// Write the outcome as one line of JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
    /// The command and its arguments, preferably after `--`.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl WorkArgs {
    /// How much is printed.
    pub(crate) fn tone(&self) -> Tone {
        match (self.json, self.quiet, self.verbose) {
            (true, _, _) => Tone::Json,
            (false, true, _) => Tone::Quiet,
            (false, false, true) => Tone::Verbose,
            (false, false, false) => Tone::Normal,
        }
    }

    /// The log, if one is asked for.
    pub(crate) fn log(&self) -> Option<Arc<Log>> {
        match self.tone() {
            Tone::Quiet => None,
            Tone::Normal | Tone::Verbose => Log::new(self.log, Form::Text),
            Tone::Json => Log::new(self.log, Form::Json),
        }
    }

    /// Uses the `max_ttl` of a deployment if it is below the default ttl.
    pub(super) fn shorten_default_ttl(&mut self) {
        let url = self.store.url.as_deref().unwrap_or_default();
        if let Some(max_ttl) = BackendConfig::from_url(url).ok().as_ref().and_then(BackendConfig::longest_ttl) {
            self.ttl = self.ttl.min(max_ttl);
        }
    }
}

fn ttl(text: &str) -> Result<Ttl, Invalid> {
    Ttl::new(parse_duration("ttl", text)?).map_err(|_| {
        let problem = format!("it is not between {} (the smallest without --grace) and 365 days", smallest_ttl());
        Invalid::new("ttl", text, problem, "give a duration such as 30s; the lease is renewed while the command runs")
    })
}

fn ttl_help() -> String {
    format!(
        "How long the store keeps the lock if this machine stops renewing it; {} or more, unless --grace is given; the lease \
         is renewed, so the command may run longer [env: LEASEHOLD_TTL]",
        whole_seconds_up(smallest_ttl().get())
    )
}

fn smallest_ttl() -> Ttl {
    Budget::smallest_ttl(None).unwrap_or(Ttl::DEFAULT)
}

/// Reads the reason for which a lock is held.
pub(super) fn why(text: &str) -> Result<String, Invalid> {
    Note::new("", 0, text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_smallest_ttl_that_is_taken() {
        let smallest = Budget::smallest_ttl(None).unwrap();
        let whole = whole_seconds_up(smallest.get());
        assert!(ttl_help().contains(&format!("; {whole} or more")), "{}", ttl_help());
        let refusal = ttl("1ms").unwrap_err().to_string();
        assert!(refusal.contains(&format!("between {smallest} ")), "{refusal}");
    }
}
