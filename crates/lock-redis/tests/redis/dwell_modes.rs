//! Readers and permits at a server that may have forgotten leases: none of them proves that nobody else holds.

use lock_core::inspect::Revoked;
use lock_core::limit::{Act, Request};
use lock_core::{Answer, BlockingBackend, Claim, ErrorKind, Limit, Mode, Queueing, Released, Renewed, Width};
use lock_redis::{RedisConfig, blocking};
use test_support::RedisServer;

use crate::dwell::{asks, begin_dwell, dwelling, dwells, end_dwell, takes, valid};
use crate::support::{self, Client, SOON, both, granted};

fn wants(name: &str, mode: Mode) -> Claim {
    let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
    Claim { width, ..asks(name).in_mode(mode) }
}

fn queued(client: &Client, claim: Claim) -> Claim {
    let claim = Claim { queueing: Queueing::Wanted, ..claim };
    let answer = client.acquire(&claim, SOON);
    assert!(matches!(answer, Ok(Answer::Queued { .. })), "{answer:?}");
    claim
}

fn held_by(client: &Client, claim: &Claim) -> bool {
    let Claim { name, .. } = claim;
    let answer = client.acquire(&Claim { queueing: Queueing::Unwanted, ..claim.clone() }, SOON);
    match answer {
        Ok(Answer::Granted { .. }) => true,
        Ok(Answer::Busy { .. }) => false,
        Ok(Answer::Queued { .. }) => panic!("{name}: it has a place"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            false
        }
    }
}

#[test]
fn nobody_joins_readers_or_takes_more_permits_during_a_dwell() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        let permit = Mode::permits(1, 4).unwrap();
        for (mode, first, name) in
            [(Mode::Shared, Mode::Shared, format!("{facade} readers")), (permit, permit, format!("{facade} permits"))]
        {
            end_dwell(&server);
            let reader = wants(&name, first);
            let lease = granted(client.acquire(&reader, SOON));
            begin_dwell(&server);
            dwells(client.acquire(&wants(&name, mode), SOON));
            dwells(client.acquire(&wants(&format!("free {name}"), mode), SOON));
            assert!(matches!(client.renew(std::slice::from_ref(&lease), SOON).unwrap()[..], [Renewed::Renewed { .. }]));
            assert!(held_by(&client, &reader), "asking again gives the same lease");
            assert_eq!(client.release(&valid(&reader), SOON).unwrap(), Released::Released);
        }
    }
}

/// Another reader, or another permit, may have been forgotten.
#[test]
fn the_end_of_a_shared_lease_hands_nothing_over_during_a_dwell() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        let whole = Mode::permits(2, 2).unwrap();
        for (held, next, name) in
            [(Mode::Shared, Mode::Exclusive, format!("{facade} writer")), (whole, whole, format!("{facade} permits"))]
        {
            end_dwell(&server);
            let reader = wants(&name, held);
            granted(client.acquire(&reader, SOON));
            let waiter = queued(&client, wants(&name, next));
            begin_dwell(&server);
            assert_eq!(client.release(&valid(&reader), SOON).unwrap(), Released::Released);
            assert!(!held_by(&client, &waiter), "{name}");
            end_dwell(&server);
            assert!(held_by(&client, &waiter), "{name}: after the dwell");
        }
    }
}

#[test]
fn an_exclusive_hold_is_handed_over_to_readers_during_a_dwell() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        end_dwell(&server);
        let writer = takes(&client, facade);
        let readers = [(); 2].map(|()| queued(&client, wants(facade, Mode::Shared)));
        begin_dwell(&server);
        assert_eq!(client.release(&valid(&writer), SOON).unwrap(), Released::Released);
        assert!(readers.iter().all(|reader| held_by(&client, reader)), "{facade}");
        dwells(client.acquire(&wants(facade, Mode::Shared), SOON));
    }
}

#[test]
fn a_writer_goes_on_as_a_reader_alone_and_a_reader_does_not_go_on_as_the_writer() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        end_dwell(&server);
        let writer = takes(&client, facade);
        let waiting = queued(&client, wants(facade, Mode::Shared));
        begin_dwell(&server);
        let reader = Claim { replaces: Some(writer.owner), ..wants(facade, Mode::Shared) };
        granted(client.acquire(&reader, SOON));
        assert!(!held_by(&client, &waiting), "{facade}: it read beside others that may have been forgotten");
        let upgrade = Claim { replaces: Some(reader.owner), ..asks(facade) };
        dwells(client.acquire(&upgrade, SOON));
        end_dwell(&server);
        granted(client.acquire(&upgrade, SOON));
    }
}

#[test]
fn neither_a_revocation_nor_another_limit_serves_anybody_during_a_dwell() {
    let server = RedisServer::start();
    let operator = blocking::Redis::connect(&RedisConfig::from_url(&dwelling(&server)).unwrap()).unwrap();
    let [(_, client), _] = both(&dwelling(&server));
    end_dwell(&server);
    let held = asks("job");
    let lease = granted(client.acquire(&held, SOON));
    let next = queued(&client, asks("job"));
    let one = Limit::new(1).unwrap();
    granted(client.acquire(&wants("pool", Mode::one_permit(one)), SOON));
    let second = queued(&client, wants("pool", Mode::one_permit(one)));
    begin_dwell(&server);
    assert_eq!(operator.revoke(&held.name, lease.tokens.high(), &support::operator(), SOON).unwrap(), Revoked::Revoked);
    assert!(!held_by(&client, &next), "after the revocation");
    let raise = Request { name: second.name.clone(), known: one, act: Act::Set(Limit::new(2).unwrap()) };
    operator.limit(&raise, SOON).unwrap();
    assert!(!held_by(&client, &second), "after the limit was raised");
}
