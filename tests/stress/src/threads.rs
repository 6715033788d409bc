//! A worker with the blocking facade.

use std::thread::{self, sleep};
use std::time::Duration;

use leasehold::blocking::{Client, Guard, NamedLock, PermitGuard, ReadGuard};
use leasehold::{AcquireError, ChangeError, OnUnavailable};

use crate::cast::{BOOK, Role, limit};
use crate::connect;
use crate::dice::{Change, Dice, TurnEnd, Waiting, Work};
use crate::history::{Ending, Leaving, What};
use crate::hold::Hold;
use crate::part::Part;
use crate::seat::{RECONNECT, REST, Seat, TOLD_WITHIN, barges, leaving};

/// Plays the part until the input ends.
pub fn play(part: &Part) {
    let client = connected(&part.url);
    thread::scope(|scope| {
        for (seat, dice) in Seat::all(part) {
            let client = &client;
            scope.spawn(move || sit(&seat, dice, client));
        }
    });
    client.close();
}

fn connected(url: &str) -> Client {
    loop {
        match connect::threads(url) {
            Ok(client) => return client,
            Err(_) => sleep(RECONNECT),
        }
    }
}

fn sit(seat: &Seat, mut dice: Dice, client: &Client) {
    while !seat.orders.are_to_end() {
        seat.say(What::Waits);
        match take_turn(seat, client, &mut dice) {
            Ok(()) => sleep(dice.rest()),
            Err(leaving) => {
                seat.say(What::Left(leaving));
                sleep(REST);
            }
        }
    }
}

fn take_turn(seat: &Seat, client: &Client, dice: &mut Dice) -> Result<(), Leaving> {
    let (waiting, work, change) = (dice.waiting(), dice.work(), dice.change());
    let ticket = if dice.adopts() { seat.take() } else { None };
    match seat.wish.role {
        Role::Write => {
            let name = seat.name();
            let lock = if seat.wish.lock == BOOK { client.rw_lock(name).write() } else { client.mutex(name) };
            let lock = patient(lock.ttl(seat.ttl), waiting);
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).map_err(told)?,
                None => waited(waiting, || lock.acquire(), || lock.try_acquire())?,
            };
            let Some(guard) = holds(seat, guard, work) else { return Ok(()) };
            match change {
                Change::None => end(seat, guard, work),
                Change::Mode(then) => go_on(seat, guard.downgrade(), then),
                Change::Ticket => leave(seat, guard, work),
            }
        }
        Role::Read => {
            let lock = patient(client.rw_lock(seat.name()).read().ttl(seat.ttl), waiting);
            let lock = if barges(waiting, &client.capabilities()) { lock.barging() } else { lock };
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).map_err(told)?,
                None => waited(waiting, || lock.acquire(), || lock.try_acquire())?,
            };
            let Some(guard) = holds(seat, guard, work) else { return Ok(()) };
            match change {
                Change::None => end(seat, guard, work),
                Change::Mode(then) => go_on(seat, guard.try_upgrade(), then),
                Change::Ticket => leave(seat, guard, work),
            }
        }
        Role::Permits(count) => {
            let lock = patient(client.semaphore(seat.name(), limit(seat.wish.lock)).ttl(seat.ttl), waiting);
            let lock = if barges(waiting, &client.capabilities()) { lock.barging() } else { lock };
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).map_err(told)?,
                None => waited(waiting, || lock.acquire_many(count), || lock.try_acquire_many(count))?,
            };
            let Some(guard) = holds(seat, guard, work) else { return Ok(()) };
            match change {
                Change::Mode(then) if guard.slots().len() > 1 => go_on(seat, guard.give_back(1), then),
                Change::Mode(_) | Change::None => end(seat, guard, work),
                Change::Ticket => leave(seat, guard, work),
            }
        }
    }
    Ok(())
}

fn patient<M>(lock: NamedLock<M>, waiting: Waiting) -> NamedLock<M> {
    match waiting {
        // A thread cannot be dropped, so it waits for a short time instead. It gives up while the store is away.
        Waiting::Limited(limit) | Waiting::Cancelled(limit) => lock.wait(limit),
        Waiting::Forever | Waiting::Never | Waiting::Barging => lock.on_unavailable(OnUnavailable::Wait),
    }
}

fn waited<M>(
    waiting: Waiting,
    acquire: impl FnOnce() -> Result<Guard<M>, AcquireError>,
    try_acquire: impl FnOnce() -> Result<Option<Guard<M>>, AcquireError>,
) -> Result<Guard<M>, Leaving> {
    match waiting {
        Waiting::Forever | Waiting::Barging | Waiting::Limited(_) | Waiting::Cancelled(_) => acquire().map_err(told),
        Waiting::Never => try_acquire().map_err(told)?.ok_or(Leaving::Busy),
    }
}

fn told(error: AcquireError) -> Leaving {
    leaving(&error)
}

/// A guard that knows what it holds.
trait Holds {
    fn hold(&self) -> Hold;
}

impl Holds for Guard {
    fn hold(&self) -> Hold {
        Hold::Write(self.fencing_token().get())
    }
}

impl Holds for ReadGuard {
    fn hold(&self) -> Hold {
        Hold::Read(self.fencing_token().get())
    }
}

impl Holds for PermitGuard {
    fn hold(&self) -> Hold {
        Hold::Permits(self.tokens().map(|(slot, token)| (slot, token.get())).collect())
    }
}

/// The guard at the end of its work, unless it was lost.
fn holds<M>(seat: &Seat, guard: Guard<M>, work: Work) -> Option<Guard<M>>
where
    Guard<M>: Holds,
{
    let held = match seat.has(guard.hold(), || guard.check().is_ok()) {
        None => false,
        Some(hold) => {
            let drafts = seat.read(&hold);
            let held = works(seat, &guard, work);
            seat.write(&drafts);
            held
        }
    };
    if !held {
        lost(seat, &guard);
    }
    held.then_some(guard)
}

/// Works under the guard that a change has made, if there was one.
fn go_on<M, N>(seat: &Seat, changed: Result<Guard<N>, ChangeError<Guard<M>>>, work: Work)
where
    Guard<N>: Holds,
{
    match changed {
        Err(unchanged) => end(seat, unchanged.into_guard(), work),
        Ok(guard) => {
            if let Some(guard) = holds(seat, guard, work) {
                end(seat, guard, work);
            }
        }
    }
}

/// Leaves a ticket, if there is one.
fn leave<M>(seat: &Seat, guard: Guard<M>, work: Work) {
    match guard.detach() {
        Ok(ticket) => seat.leave(&ticket),
        Err(unchanged) => end(seat, unchanged.into_guard(), work),
    }
}

fn end<M>(seat: &Seat, guard: Guard<M>, work: Work) {
    match work.end {
        TurnEnd::Drop => {
            drop(guard);
            seat.say(What::Ended(Ending::Dropped));
        }
        TurnEnd::Release => {
            // A failed release is repeated in the background.
            _ = guard.release();
            seat.say(What::Ended(Ending::Released));
        }
    }
}

fn works<M>(seat: &Seat, guard: &Guard<M>, work: Work) -> bool {
    (0..work.steps).take_while(|_| !seat.orders.are_to_end()).all(|_| still_holds_after(seat, guard, work.step))
}

fn still_holds_after<M>(seat: &Seat, guard: &Guard<M>, step: Duration) -> bool {
    let lost = guard.lost_within(step);
    if lost.is_some() && seat.heeds_loss() {
        return false;
    }
    seat.still(|| guard.check().is_ok())
}

fn lost<M>(seat: &Seat, guard: &Guard<M>) {
    seat.lost(guard.lost_within(TOLD_WITHIN).is_some());
}
