//! Holders and waiters of both facades while the server loses its data.

use std::thread;
use std::time::Duration;

use lock_core::{Certainty, Claim, FencingToken, Queueing};
use test_support::{DataCopy, RedisOptions, RedisServer};

use crate::facades::FACADES;
use crate::support::{SOON, both, claim, eventually, granted, release_of, take};

/// Short, so that lost locks do not block others for long.
const TTL: Duration = Duration::from_secs(2);

/// A way to lose data.
type Loss = (&'static str, fn(&mut RedisServer, &DataCopy));

/// What a server that writes its changes to disk can lose.
const LOSSES: [Loss; 4] = [
    ("restarted empty", |server, _| server.restart_empty()),
    ("an old file", RedisServer::restart_from),
    ("flushed under live clients", |server, _| server.command::<()>(&["FLUSHALL"])),
    ("its counter deleted", |server, _| server.command::<()>(&["DEL", "leasehold:counter"])),
];

fn rises(last: &mut Option<FencingToken>, token: FencingToken, how: &str) {
    assert!(Some(token) > *last, "{how}: {token} is not above {last:?}");
    *last = Some(token);
}

#[test]
fn tokens_rise_in_the_hands_of_clients_that_live_through_every_loss() {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let facades: Vec<_> = FACADES.iter().map(|(_, connect)| connect(&server.url())).collect();
    let mut last = None;
    let mut draw = |how: &str| {
        for facade in &facades {
            let held = facade.acquire("job", TTL);
            rises(&mut last, held.token(), how);
            held.release();
        }
    };
    draw("at first");
    let early = server.copy_data();
    for _ in 0..20 {
        draw("in a row");
    }
    for (how, lose) in LOSSES {
        lose(&mut server, &early);
        draw(how);
        draw(how);
    }
}

#[test]
fn tokens_rise_over_the_kills_of_a_server_that_writes_nothing() {
    let mut server = RedisServer::start();
    let facades: Vec<_> = FACADES.iter().map(|(_, connect)| connect(&server.url())).collect();
    let mut last = None;
    for _ in 0..3 {
        for facade in &facades {
            let held = facade.acquire("job", TTL);
            rises(&mut last, held.token(), "killed");
            held.release();
        }
        server.restart_with_data();
    }
}

#[test]
fn a_holder_from_before_a_loss_does_not_disturb_the_one_after_it() {
    for &(facade, connect) in FACADES {
        for (how, lose) in &LOSSES[..3] {
            let mut server = RedisServer::start_with(RedisOptions::default().append_only());
            let nothing = server.copy_data();
            let (before, after) = (connect(&server.url()), connect(&server.url()));
            let held = before.acquire("job", TTL);
            thread::scope(|scope| {
                let next = scope.spawn(|| after.acquire("job", TTL));
                eventually("the next one waits", || server.command::<u8>(&["HLEN", "leasehold:{job}:w"]) == 1);
                lose(&mut server, &nothing);
                let next = next.join().unwrap();
                assert!(next.token() > held.token(), "{facade}, {how}");
                eventually("the first one learns of it", || !held.is_stored());
                held.release();
                assert!(next.is_stored(), "{facade}, {how}: released by somebody else");
                next.release();
            });
        }
    }
}

#[test]
fn a_hand_over_draws_above_the_old_tokens_where_the_counter_is_missing() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (holder, lease) = take(&client, facade);
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        client.acquire(&waiter, SOON).unwrap();
        server.command::<()>(&["DEL", "leasehold:counter"]);
        client.release(&release_of(&holder, Certainty::Answered), SOON).unwrap();
        let value: String = server.command(&["GET", facade]);
        assert!(value.contains(&waiter.owner.to_wire()), "{facade}: not handed over");
        assert!(granted(client.acquire(&waiter, SOON)).tokens.low() > lease.tokens.high(), "{facade}");
    }
}
