//! A worker with the async facade.

use std::time::Duration;

use leasehold::{AcquireError, ChangeError, Client, Guard, NamedLock, OnUnavailable, PermitGuard, ReadGuard};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{sleep, timeout};

use crate::cast::{BOOK, Role, limit};
use crate::connect;
use crate::dice::{Change, Dice, TurnEnd, Waiting, Work};
use crate::history::{Ending, Leaving, What};
use crate::hold::Hold;
use crate::part::Part;
use crate::seat::{RECONNECT, REST, Seat, TOLD_WITHIN, barges, leaving};

/// Plays the part until the input ends.
pub fn play(part: &Part) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connected(&part.url).await;
        let mut seats = JoinSet::new();
        for (seat, dice) in Seat::all(part) {
            seats.spawn(sit(seat, dice, client.clone()));
        }
        while let Some(ended) = seats.join_next().await {
            ended.unwrap();
        }
        client.close().await;
    });
}

async fn connected(url: &str) -> Client {
    loop {
        match connect::nonblocking(url).await {
            Ok(client) => return client,
            Err(_) => sleep(RECONNECT).await,
        }
    }
}

async fn sit(seat: Seat, mut dice: Dice, client: Client) {
    while !seat.orders.are_to_end() {
        seat.say(What::Waits);
        match take_turn(&seat, &client, &mut dice).await {
            Ok(()) => sleep(dice.rest()).await,
            Err(leaving) => {
                seat.say(What::Left(leaving));
                sleep(REST).await;
            }
        }
    }
}

async fn take_turn(seat: &Seat, client: &Client, dice: &mut Dice) -> Result<(), Leaving> {
    let (waiting, work, change) = (dice.waiting(), dice.work(), dice.change());
    let ticket = if dice.adopts() { block_in_place(|| seat.take()) } else { None };
    match seat.wish.role {
        Role::Write => {
            let name = seat.name();
            let lock = if seat.wish.lock == BOOK { client.rw_lock(name).write() } else { client.mutex(name) };
            let lock = patient(lock.ttl(seat.ttl), waiting);
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).await.map_err(told)?,
                None => waited(waiting, lock.acquire(), lock.try_acquire()).await?,
            };
            let Some(guard) = holds(seat, guard, work).await else { return Ok(()) };
            match change {
                Change::None => end(seat, guard, work).await,
                Change::Mode(then) => go_on(seat, guard.downgrade().await, then).await,
                Change::Ticket => leave(seat, guard, work).await,
            }
        }
        Role::Read => {
            let lock = patient(client.rw_lock(seat.name()).read().ttl(seat.ttl), waiting);
            let lock = if barges(waiting, &client.capabilities()) { lock.barging() } else { lock };
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).await.map_err(told)?,
                None => waited(waiting, lock.acquire(), lock.try_acquire()).await?,
            };
            let Some(guard) = holds(seat, guard, work).await else { return Ok(()) };
            match change {
                Change::None => end(seat, guard, work).await,
                Change::Mode(then) => go_on(seat, guard.try_upgrade().await, then).await,
                Change::Ticket => leave(seat, guard, work).await,
            }
        }
        Role::Permits(count) => {
            let lock = patient(client.semaphore(seat.name(), limit(seat.wish.lock)).ttl(seat.ttl), waiting);
            let lock = if barges(waiting, &client.capabilities()) { lock.barging() } else { lock };
            let guard = match ticket {
                Some(ticket) => lock.adopt(&ticket).await.map_err(told)?,
                None => waited(waiting, lock.acquire_many(count), lock.try_acquire_many(count)).await?,
            };
            let Some(guard) = holds(seat, guard, work).await else { return Ok(()) };
            match change {
                Change::Mode(then) if guard.slots().len() > 1 => go_on(seat, guard.give_back(1).await, then).await,
                Change::Mode(_) | Change::None => end(seat, guard, work).await,
                Change::Ticket => leave(seat, guard, work).await,
            }
        }
    }
    Ok(())
}

fn patient<M>(lock: NamedLock<M>, waiting: Waiting) -> NamedLock<M> {
    match waiting {
        // It gives up while the store is away.
        Waiting::Limited(limit) => lock.wait(limit),
        Waiting::Forever | Waiting::Never | Waiting::Barging | Waiting::Cancelled(_) => {
            lock.on_unavailable(OnUnavailable::Wait)
        }
    }
}

async fn waited<M>(
    waiting: Waiting,
    acquire: impl Future<Output = Result<Guard<M>, AcquireError>>,
    try_acquire: impl Future<Output = Result<Option<Guard<M>>, AcquireError>>,
) -> Result<Guard<M>, Leaving> {
    match waiting {
        Waiting::Forever | Waiting::Barging | Waiting::Limited(_) => acquire.await.map_err(told),
        Waiting::Never => try_acquire.await.map_err(told)?.ok_or(Leaving::Busy),
        Waiting::Cancelled(after) => match timeout(after, acquire).await {
            Ok(waited) => waited.map_err(told),
            Err(_) => Err(Leaving::Cancelled),
        },
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
async fn holds<M>(seat: &Seat, guard: Guard<M>, work: Work) -> Option<Guard<M>>
where
    Guard<M>: Holds,
{
    let held = match seat.has(guard.hold(), || guard.check().is_ok()) {
        None => false,
        Some(hold) => {
            let drafts = block_in_place(|| seat.read(&hold));
            let held = works(seat, &guard, work).await;
            block_in_place(|| seat.write(&drafts));
            held
        }
    };
    if !held {
        lost(seat, &guard).await;
    }
    held.then_some(guard)
}

/// Works under the guard that a change has made, if there was one.
async fn go_on<M, N>(seat: &Seat, changed: Result<Guard<N>, ChangeError<Guard<M>>>, work: Work)
where
    Guard<N>: Holds,
{
    match changed {
        Err(unchanged) => end(seat, unchanged.into_guard(), work).await,
        Ok(guard) => {
            if let Some(guard) = holds(seat, guard, work).await {
                end(seat, guard, work).await;
            }
        }
    }
}

/// Leaves a ticket, if there is one.
async fn leave<M>(seat: &Seat, guard: Guard<M>, work: Work) {
    match guard.detach().await {
        Ok(ticket) => block_in_place(|| seat.leave(&ticket)),
        Err(unchanged) => end(seat, unchanged.into_guard(), work).await,
    }
}

async fn end<M>(seat: &Seat, guard: Guard<M>, work: Work) {
    match work.end {
        TurnEnd::Drop => {
            drop(guard);
            seat.say(What::Ended(Ending::Dropped));
        }
        TurnEnd::Release => {
            // A failed release is repeated in the background.
            _ = guard.release().await;
            seat.say(What::Ended(Ending::Released));
        }
    }
}

async fn works<M>(seat: &Seat, guard: &Guard<M>, work: Work) -> bool {
    let steps = (0..work.steps).take_while(|_| !seat.orders.are_to_end());
    for _ in steps {
        if !still_holds_after(seat, guard, work.step).await {
            return false;
        }
    }
    true
}

async fn still_holds_after<M>(seat: &Seat, guard: &Guard<M>, step: Duration) -> bool {
    tokio::select! {
        _ = guard.lost(), if seat.heeds_loss() => return false,
        () = sleep(step) => {}
    }
    seat.still(|| guard.check().is_ok())
}

async fn lost<M>(seat: &Seat, guard: &Guard<M>) {
    seat.lost(timeout(TOLD_WITHIN, guard.lost()).await.is_ok());
}
