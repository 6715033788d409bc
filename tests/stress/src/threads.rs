//! A worker with the blocking facade.

use std::thread::{self, sleep};
use std::time::Duration;

use leasehold::AcquireError;
use leasehold::blocking::{Client, Guard};

use crate::connect;
use crate::history::{Ending, Leaving, What, now};
use crate::part::{Part, RECONNECT, REST, Seat, TurnEnd, Waiting, Work, leaving};

/// Plays the part until the input ends.
pub fn play(part: &Part) {
    let client = connected(&part.url);
    thread::scope(|scope| {
        for seat in Seat::all(part) {
            let client = &client;
            scope.spawn(move || sit(&seat, client));
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

fn sit(seat: &Seat, client: &Client) {
    let mut dice = seat.dice();
    while !seat.orders.are_to_end() {
        seat.say(What::Waits);
        match wait(seat, client, dice.waiting()) {
            Ok(guard) => {
                take_turn(seat, guard, dice.work());
                sleep(dice.rest());
            }
            Err(leaving) => {
                seat.say(What::Left(leaving));
                sleep(REST);
            }
        }
    }
}

fn wait(seat: &Seat, client: &Client, waiting: Waiting) -> Result<Guard, Leaving> {
    let mutex = client.mutex(seat.lock).ttl(seat.ttl);
    let told = |error: AcquireError| leaving(&error);
    match waiting {
        Waiting::Forever => mutex.acquire().map_err(told),
        Waiting::Never => mutex.try_acquire().map_err(told)?.ok_or(Leaving::Busy),
        // A thread cannot be dropped, so it waits for a short time instead.
        Waiting::Limited(limit) | Waiting::Cancelled(limit) => mutex.wait(limit).acquire().map_err(told),
    }
}

fn take_turn(seat: &Seat, guard: Guard, work: Work) {
    let at = now();
    if guard.check().is_err() {
        return seat.say(What::Ended(Ending::Lost));
    }
    let token = guard.fencing_token().get();
    seat.say_of(at, What::Has(token));
    let draft = seat.register.read(seat.lock, token);
    let held = (0..work.steps).all(|_| still_holds_after(seat, &guard, work.step));
    draft.inspect(|draft| seat.register.write(draft));
    if !held {
        return seat.say(What::Ended(Ending::Lost));
    }
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

fn still_holds_after(seat: &Seat, guard: &Guard, step: Duration) -> bool {
    if guard.lost_within(step).is_some() {
        return false;
    }
    let at = now();
    let holds = guard.check().is_ok();
    if holds {
        seat.say_of(at, What::Still);
    }
    holds
}
