//! A lock that is kept for a while after its release: what is stored, and who is notified.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{
    Answer, Certainty, Claim, ErrorKind, Fenced, Mode, Queueing, ReleaseRequest, Released, Renewed, Terms, Ttl,
};
use test_support::{RedisOptions, RedisServer};

use crate::support::{Client, SOON, both, claim, granted, owner, release_of, take};

const LONG: Duration = Duration::from_secs(60);

fn keep(client: &Client, claim: &Claim, certainty: Certainty, time: Duration) -> Released {
    client.release(&ReleaseRequest { keep: Some(time), ..release_of(claim, certainty) }, SOON).unwrap()
}

fn remaining(server: &RedisServer, key: &str) -> Duration {
    Duration::from_millis(server.command::<u64>(&["PTTL", key]))
}

#[test]
fn a_kept_lock_has_the_tokens_of_its_last_holder_and_another_owner() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let (mine, lease) = take(&client, facade);
        let held: String = server.command(&["GET", facade]);
        assert_eq!(keep(&client, &mine, Certainty::Answered, LONG), Released::Released, "{facade}");
        let kept: String = server.command(&["GET", facade]);
        let wire = |claim: &Claim| format!("lh1:{}:", claim.owner.to_wire());
        let nobody = format!("lh1:{}:", mine.owner.kept().to_wire());
        assert_eq!(kept, held.replace(&wire(&mine), &nobody), "{facade}");
        assert!(remaining(&server, facade) > Ttl::DEFAULT.get() && remaining(&server, facade) <= LONG, "{facade}");
        assert_eq!(client.renew(std::slice::from_ref(&lease), SOON).unwrap(), [Renewed::NotHeld], "{facade}");
        assert_eq!(client.fence(&lease, SOON), Ok(Fenced::NotHeld), "{facade}");

        assert_eq!(keep(&client, &mine, Certainty::Answered, LONG / 2), Released::Released, "{facade}");
        assert_eq!(keep(&client, &mine, Certainty::Unknown, 2 * LONG), Released::Released, "{facade}");
        assert!(remaining(&server, facade) <= LONG / 2, "{facade}: it is never kept for longer");
        let tombstone = format!("leasehold:{{{facade}}}:t:{}", mine.owner.to_wire());
        assert_eq!(server.command::<u8>(&["EXISTS", &tombstone]), 1, "{facade}");
        assert_eq!(client.release(&release_of(&mine, Certainty::Answered), SOON), Ok(Released::Released), "{facade}");
        assert_eq!(server.command::<u8>(&["EXISTS", facade]), 0, "{facade}");
    }
}

/// It learns how long the lock is kept, and asks again then.
#[test]
fn the_next_in_line_is_told_to_ask() {
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut inbox = listening.as_pubsub();
    let here = "leasehold:inbox:00000000000000000000000000000001";
    inbox.subscribe(here).unwrap();
    inbox.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for (facade, client) in both(&server.url()) {
        let (mine, _lease) = take(&client, facade);
        let (waiter, over) = (owner(7).to_wire(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + LONG);
        server.command::<()>(&["RPUSH", &format!("leasehold:{{{facade}}}:q"), &waiter]);
        let entry = format!("{} 30000 1 0 {here} n1 4711@now", over.as_millis());
        server.command::<()>(&["HSET", &format!("leasehold:{{{facade}}}:w"), &waiter, &entry]);
        assert_eq!(keep(&client, &mine, Certainty::Answered, LONG), Released::Released, "{facade}");
        let told: String = inbox.get_message().unwrap().get_payload().unwrap();
        assert_eq!(told, format!("recheck {facade}"));
        let next = Claim { owner: owner(7), queueing: Queueing::Wanted, ..claim(facade) };
        let answer = client.acquire(&next, SOON);
        let Ok(Answer::Queued { position: 1, remaining: Some(left), .. }) = answer else { panic!("{answer:?}") };
        assert!(left > LONG / 2 && left <= LONG, "{facade}: {left:?}");
        assert_eq!(client.release(&release_of(&mine, Certainty::Answered), SOON), Ok(Released::Released), "{facade}");
        granted(client.acquire(&next, SOON));
    }
}

#[test]
fn what_is_not_held_alone_is_not_kept() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        let reader = Claim { terms: Terms { mode: Mode::Shared, ..claim(facade).terms }, ..claim(facade) };
        let lease = granted(client.acquire(&reader, SOON));
        let request = ReleaseRequest { keep: Some(LONG), ..release_of(&reader, Certainty::Unknown) };
        let error = client.release(&request, SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{facade}: {error}");
        assert_eq!(client.fence(&lease, SOON), Ok(Fenced::Acknowledged), "{facade}");
        let writer = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        assert!(matches!(client.acquire(&writer, SOON), Ok(Answer::Queued { .. })), "{facade}");
        assert_eq!(keep(&client, &writer, Certainty::Answered, LONG), Released::Left, "{facade}");
        assert_eq!(keep(&client, &writer, Certainty::Answered, LONG), Released::NotHeld, "{facade}");
    }
}

#[test]
fn a_full_server_keeps_a_lock() {
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--maxmemory-policy", "noeviction"]));
    for (facade, client) in both(&server.url()) {
        let (mine, _lease) = take(&client, facade);
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(keep(&client, &mine, Certainty::Unknown, LONG), Released::Released, "{facade}");
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        assert!(matches!(client.acquire(&claim(facade), SOON), Ok(Answer::Busy { .. })), "{facade}");
    }
}
