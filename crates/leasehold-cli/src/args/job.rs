//! How a schedule that fires on several machines runs a command once.

use std::time::Duration;

use clap::Args;
use leasehold::Invalid;
use leasehold::kit::Slot;

use crate::durations::{duration, human};
use crate::exit::Failure;
use crate::job::{Again, Job};

/// What is left behind after a run.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Run once for this scheduled time, across all machines; if it has run, do nothing and exit with 0.
    ///
    /// A time such as 2026-11-21T03:00 or 2026-11-21T04:00+01:00, or a date; without an offset, it is in UTC. It is the scheduled time, so
    /// all machines give the same one, whatever their clocks say.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["shared", "slots"])]
    slot: Option<Slot>,
    /// How long to remember slots that have run; older ones are refused.
    #[arg(long, value_name = "DURATION", requires = "slot", default_value = "7d", value_parser = duration("retain"))]
    retain: Duration,
    /// Let another machine run the slot if this one dies, loses the lock, or a signal ends the command.
    ///
    /// With it, a slot may run more than once. Without it, the slot is marked before the command begins, and runs at most once.
    #[arg(long, requires = "slot")]
    retry_after_crash: bool,
    /// Let another machine run the slot if the command ends with an exit code other than 0, or cannot be started.
    ///
    /// Then --at-least does not apply either. Without this, such a slot counts as run.
    #[arg(long, requires = "slot")]
    retry_after_failure: bool,
    /// Warn about missed slots of a schedule that fires at this interval.
    ///
    /// It reports the slots between the last run and this one, once. It does not run the command for them.
    #[arg(long, value_name = "DURATION", requires = "slot", conflicts_with = "previous", value_parser = duration("every"))]
    every: Option<Duration>,
    /// Warn if this earlier slot was missed, for a schedule with uneven intervals.
    ///
    /// Can be given several times.
    #[arg(long, value_name = "TIME", requires = "slot")]
    previous: Vec<Slot>,
    /// Keep the lock for at least this long after the command starts, even if the command finishes sooner.
    ///
    /// If leasehold is killed, or the machine crashes, the lock becomes free after its ttl. To cover that case, set an equally long --ttl.
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["shared", "slots"], value_parser = duration("at-least"))]
    at_least: Option<Duration>,
    /// Kill the command after this long, including the grace period.
    #[arg(long, visible_alias = "max-hold", value_name = "DURATION", value_parser = duration("at-most"))]
    at_most: Option<Duration>,
}

impl JobArgs {
    /// The slot to mark after a run, and how long to keep the lock. `shortest` is the shortest time that a command can be given.
    ///
    /// # Errors
    /// That of an invalid command line if the slot is too old or `at_most` is too short.
    pub(crate) fn job(&self, shortest: Duration) -> Result<Job, Failure> {
        self.planned(shortest).map_err(|invalid| Failure::usage(&invalid))
    }

    /// Whether it is for one time of a schedule.
    pub(crate) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    fn planned(&self, shortest: Duration) -> Result<Job, Invalid> {
        self.check_at_most(shortest)?;
        if let Some(slot) = self.slot {
            slot.check(self.retain, self.every, &self.previous)?;
        }
        let again = |again| if again { Again::Yes } else { Again::No };
        Ok(Job {
            slot: self.slot,
            retain: Some(self.retain),
            crashed: again(self.retry_after_crash),
            failed: again(self.retry_after_failure),
            every: self.every,
            previous: self.previous.clone(),
            at_least: self.at_least,
            at_most: self.at_most,
        })
    }

    fn check_at_most(&self, shortest: Duration) -> Result<(), Invalid> {
        let refuse = |what, given, problem, remedy: &str| Err(Invalid::new(what, human(given), problem, remedy));
        match (self.at_least, self.at_most) {
            (_, Some(at_most)) if at_most < shortest => {
                let problem = format!("a run takes {} with the time for ending the command", human(shortest));
                refuse("at-most", at_most, problem, "give a longer duration, or a shorter --grace")
            }
            (Some(at_least), Some(at_most)) if at_least > at_most => {
                let problem = format!("it is above --at-most, which is {}", human(at_most));
                refuse("at-least", at_least, problem, "make it shorter, or --at-most longer")
            }
            (_, _) => Ok(()),
        }
    }
}
