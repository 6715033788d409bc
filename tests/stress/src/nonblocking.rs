//! A worker with the async facade.

use std::time::Duration;

use leasehold::{AcquireError, Client, Guard};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{sleep, timeout};

use crate::connect;
use crate::history::{Ending, Leaving, What, now};
use crate::part::{Part, RECONNECT, REST, Seat, TurnEnd, Waiting, Work, leaving};

/// Plays the part until the input ends.
pub fn play(part: &Part) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connected(&part.url).await;
        let mut seats = JoinSet::new();
        for seat in Seat::all(part) {
            seats.spawn(sit(seat, client.clone()));
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

async fn sit(seat: Seat, client: Client) {
    let mut dice = seat.dice();
    while !seat.orders.are_to_end() {
        seat.say(What::Waits);
        match wait(&seat, &client, dice.waiting()).await {
            Ok(guard) => {
                take_turn(&seat, guard, dice.work()).await;
                sleep(dice.rest()).await;
            }
            Err(leaving) => {
                seat.say(What::Left(leaving));
                sleep(REST).await;
            }
        }
    }
}

async fn wait(seat: &Seat, client: &Client, waiting: Waiting) -> Result<Guard, Leaving> {
    let mutex = client.mutex(seat.lock).ttl(seat.ttl);
    let told = |error: AcquireError| leaving(&error);
    match waiting {
        Waiting::Forever => mutex.acquire().await.map_err(told),
        Waiting::Never => mutex.try_acquire().await.map_err(told)?.ok_or(Leaving::Busy),
        Waiting::Limited(limit) => mutex.wait(limit).acquire().await.map_err(told),
        Waiting::Cancelled(after) => match timeout(after, mutex.acquire()).await {
            Ok(waited) => waited.map_err(told),
            Err(_) => Err(Leaving::Cancelled),
        },
    }
}

async fn take_turn(seat: &Seat, guard: Guard, work: Work) {
    let at = now();
    if guard.check().is_err() {
        return seat.say(What::Ended(Ending::Lost));
    }
    let token = guard.fencing_token().get();
    seat.say_of(at, What::Has(token));
    let draft = block_in_place(|| seat.register.read(seat.lock, token));
    let held = works(seat, &guard, work).await;
    draft.inspect(|draft| block_in_place(|| seat.register.write(draft)));
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
            _ = guard.release().await;
            seat.say(What::Ended(Ending::Released));
        }
    }
}

async fn works(seat: &Seat, guard: &Guard, work: Work) -> bool {
    for _ in 0..work.steps {
        if !still_holds_after(seat, guard, work.step).await {
            return false;
        }
    }
    true
}

async fn still_holds_after(seat: &Seat, guard: &Guard, step: Duration) -> bool {
    tokio::select! {
        _ = guard.lost() => return false,
        () = sleep(step) => {}
    }
    let at = now();
    let holds = guard.check().is_ok();
    if holds {
        seat.say_of(at, What::Still);
    }
    holds
}
