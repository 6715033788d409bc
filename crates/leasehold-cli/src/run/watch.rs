//! When to ask the command to end, and when to kill it. Pure: `now` is always passed in.

use std::time::Duration;

use leasehold::clock::Moment;
use leasehold::kit::Budget;

/// Timers do not advance while a machine is suspended, but the clock of the deadline does: so this is the longest sleep
/// before the next look at it.
pub(crate) const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Watches the end of a lease over a command.
#[derive(Debug)]
pub(crate) struct Watch {
    budget: Budget,
    deadline: Moment,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The end was requested at this moment.
    Asked(Moment),
    Terminating {
        kill_at: Moment,
    },
    Killed,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing for this long.
    Sleep(Duration),
    /// Ask the command to end.
    Terminate,
    /// Kill it.
    Kill,
}

impl Watch {
    /// Watches a lease that ends at `deadline`.
    pub(crate) fn new(budget: Budget, deadline: Moment) -> Self {
        Self { budget, deadline, phase: Phase::Running }
    }

    /// The lease now ends at `deadline`. An end that has begun continues: the command has been signalled.
    pub(crate) fn extend(&mut self, deadline: Moment) {
        self.deadline = deadline;
    }

    /// Begins to end the command, without waiting for the deadline.
    pub(crate) fn end(&mut self, now: Moment) {
        if self.phase == Phase::Running {
            self.phase = Phase::Asked(now);
        }
    }

    /// The end of the lease.
    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// Whether the command is being ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.phase != Phase::Running
    }

    /// What to do at `now`. The caller has to do it.
    pub(crate) fn step(&mut self, now: Moment) -> Step {
        let latest_kill = self.deadline - self.budget.margin;
        match self.phase {
            Phase::Running => self.terminate_from(latest_kill - self.budget.grace, now),
            Phase::Asked(moment) => self.terminate_from(moment, now),
            Phase::Terminating { kill_at } if now >= kill_at.min(latest_kill) => {
                self.phase = Phase::Killed;
                Step::Kill
            }
            Phase::Terminating { kill_at } => sleep_until(kill_at.min(latest_kill), now),
            Phase::Killed => Step::Sleep(SLEEP_MAX),
        }
    }

    fn terminate_from(&mut self, moment: Moment, now: Moment) -> Step {
        if now < moment {
            return sleep_until(moment, now);
        }
        let kill_at = (now + self.budget.grace).min(self.deadline - self.budget.margin);
        self.phase = Phase::Terminating { kill_at };
        Step::Terminate
    }
}

fn sleep_until(moment: Moment, now: Moment) -> Step {
    Step::Sleep(moment.since(now).min(SLEEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { grace: Duration::from_secs(5), margin: Duration::from_secs(1) };

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    #[test]
    fn silence_ends_the_command_before_the_deadline() {
        let mut watch = Watch::new(BUDGET, at(30));
        assert_eq!(watch.step(at(0)), Step::Sleep(SLEEP_MAX));
        assert_eq!(watch.step(at(24)), Step::Terminate);
        assert_eq!(watch.step(at(25)), Step::Sleep(SLEEP_MAX));
        assert_eq!(watch.step(at(29)), Step::Kill);
        assert_eq!(watch.step(at(40)), Step::Sleep(SLEEP_MAX));
    }

    #[test]
    fn a_renewal_moves_everything_unless_the_end_has_begun() {
        let mut watch = Watch::new(BUDGET, at(30));
        watch.extend(at(40));
        assert_eq!(watch.step(at(33)), Step::Sleep(SLEEP_MAX));
        assert_eq!(watch.step(at(34)), Step::Terminate);
        watch.extend(at(60));
        assert_eq!(watch.step(at(39)), Step::Kill);
    }

    #[test]
    fn an_end_that_is_asked_for_has_its_grace_within_the_deadline() {
        let mut watch = Watch::new(BUDGET, at(30));
        watch.end(at(10));
        assert_eq!(watch.step(at(10)), Step::Terminate);
        assert_eq!(watch.step(at(15)), Step::Kill);
        let mut late = Watch::new(BUDGET, at(30));
        late.end(at(28));
        assert_eq!(late.step(at(28)), Step::Terminate);
        assert_eq!(late.step(at(29)), Step::Kill);
    }

    #[test]
    fn after_a_long_sleep_both_signals_follow_at_once() {
        let mut watch = Watch::new(BUDGET, at(30));
        assert_eq!(watch.step(at(1000)), Step::Terminate);
        assert_eq!(watch.step(at(1000)), Step::Kill);
    }
}
