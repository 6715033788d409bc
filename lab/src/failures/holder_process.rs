//! The process of a holder: it does what the scene says, with `leasehold` and a resource.

use std::io::{Write, stdin, stdout};
use std::time::{Duration, SystemTime};

use leasehold::blocking::{Client, Guard, Mutex};
use leasehold::clock::{Clock, HostClock};
use leasehold::{AcquireError, HoldError};

use super::orders::{Answer, Order, Setup};
use super::resource::Resource;
use crate::shared::children;
use crate::shared::failure::{Exit, Failure};

/// Longer than any scene.
const WAIT: Duration = Duration::from_secs(60);

/// Obeys until standard input ends.
pub(crate) fn main() -> Result<(), Failure> {
    children::die_with_parent();
    let mut lines = stdin().lines();
    let mut next = || lines.next().transpose().map_err(|error| broken(&error));
    let Some(setup) = next()? else { return Ok(()) };
    let setup = serde_json::from_str(&setup).map_err(|error| broken(&error))?;
    let mut holder = match Holder::new(&setup) {
        Ok(holder) => holder,
        Err(failure) => return say(&Answer::Failed(failure.message)),
    };
    say(&Answer::Done)?;
    while let Some(order) = next()? {
        let order = serde_json::from_str(&order).map_err(|error| broken(&error))?;
        say(&holder.obey(order))?;
    }
    Ok(())
}

fn say(answer: &Answer) -> Result<(), Failure> {
    let line = serde_json::to_string(answer).map_err(|error| broken(&error))?;
    writeln!(stdout().lock(), "{line}").map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::system("a holder cannot talk to its scene", error)
}

struct Holder {
    mutex: Mutex,
    guard: Option<Guard>,
    resource: Resource,
    client: Client,
}

impl Holder {
    fn new(setup: &Setup) -> Result<Self, Failure> {
        let client = connect(&setup.locks)?;
        let mutex = client.mutex(&setup.lock).ttl(Duration::from_millis(setup.ttl_ms)).wait(WAIT);
        Ok(Self { mutex, guard: None, resource: Resource::connect(setup)?, client })
    }

    fn obey(&mut self, order: Order) -> Answer {
        match (order, self.guard.take()) {
            (Order::Acquire, _) => self.acquired(self.mutex.acquire().map(Some)),
            (Order::TryAcquire, _) => self.acquired(self.mutex.try_acquire()),
            (Order::Date, guard) => {
                self.guard = guard;
                Answer::Date(SystemTime::now())
            }
            (Order::Warnings, guard) => {
                self.guard = guard;
                Answer::Warnings(self.client.warnings().join(" "))
            }
            (Order::Read, guard) => {
                self.guard = guard;
                self.resource.read()
            }
            (Order::Release, Some(guard)) => released(guard.release()),
            (order, Some(guard)) => {
                let answer = self.work(&order, &guard);
                self.guard = Some(guard);
                answer
            }
            (order, None) => Answer::Failed(format!("{order:?} without a lock")),
        }
    }

    fn acquired(&mut self, acquired: Result<Option<Guard>, AcquireError>) -> Answer {
        match acquired {
            Ok(Some(guard)) => {
                let answer = Answer::Acquired(guard.fencing_token());
                self.guard = Some(guard);
                answer
            }
            Ok(None) => Answer::Busy,
            Err(error) => Answer::Failed(error.to_string()),
        }
    }

    fn work(&mut self, order: &Order, guard: &Guard) -> Answer {
        match order {
            Order::Raise | Order::Write(_) | Order::Begin | Order::Ask(_) => self.resource.work(order, guard),
            Order::Check => guard.check().map_or_else(|lost| Answer::Lost(lost.reason.to_string()), |()| Answer::Valid),
            Order::Lose => Answer::Lost(guard.lost().reason.to_string()),
            Order::Remaining => Answer::Remaining(guard.remaining()),
            Order::Date | Order::Warnings | Order::Acquire | Order::TryAcquire | Order::Read | Order::Release => {
                Answer::Failed(format!("{order:?} needs no guard"))
            }
        }
    }
}

/// Connects to a store that may be slow, because the machine is.
fn connect(url: &str) -> Result<Client, Failure> {
    let deadline = HostClock.now() + WAIT / 2;
    loop {
        match leasehold::blocking::connect(url).map_err(Failure::from) {
            Err(failure) if failure.exit == Exit::Unavailable && HostClock.now() < deadline => {}
            connected => return connected,
        }
    }
}

fn released(answer: Result<(), HoldError>) -> Answer {
    match answer {
        Ok(()) => Answer::Done,
        Err(HoldError::Lost(lost)) => Answer::Lost(lost.reason.to_string()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
