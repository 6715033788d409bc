//! A barging claim is granted whenever it fits, although others wait that do not; a fair one never.

use lock_core::{Answer, Claim, Fairness, Mode, Released};

use crate::facade::options;
use crate::verbs::{AMPLE, LONG, claim, in_mode, lasting, waiting_claim};
use crate::{Bench, Client, Verbs};

const LIMIT: u32 = 4;

fn barging(claim: Claim) -> Claim {
    Claim { fairness: Fairness::Barging, ..claim }
}

fn reader(claim: Claim) -> Claim {
    in_mode(Mode::Shared, claim)
}

fn writer(claim: Claim) -> Claim {
    in_mode(Mode::Exclusive, claim)
}

fn permits(count: u32, claim: Claim) -> Claim {
    in_mode(Mode::permits(count, LIMIT).unwrap(), claim)
}

/// The claim must be granted, and the answer must say that others wait.
#[track_caller]
fn passes(verbs: &Verbs, claim: &Claim) {
    let answer = verbs.try_acquire(claim).unwrap();
    assert!(matches!(answer, Answer::Granted { wanted: true, .. }), "{answer:?}");
}

/// Readers hold and a writer waits: a barging reader joins the others, a fair one waits, and the writer is next.
pub fn a_reader_passes_a_writer_that_waits(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, waits, fair) = (reader(claim("a")), writer(waiting_claim("a")), reader(waiting_claim("a")));
    one.take(&first);
    assert_eq!((two.queued(&waits), three.queued(&fair)), (1, 2));
    let later = [reader(claim("a")), reader(waiting_claim("a"))].map(barging);
    later.iter().for_each(|later| passes(&three, later));
    three.queued(&fair);
    for claim in later.iter().chain([&first]) {
        two.denied(&waits);
        assert_eq!(one.release(claim), Released::Released);
    }
    two.take(&waits);
    three.queued(&fair);
    assert_eq!(two.release(&waits), Released::Released);
    three.take(&fair);
}

/// A request for few permits passes a large one that waits, if it is barging.
pub fn a_small_request_passes_a_large_one(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, large, fair) = (permits(3, claim("a")), permits(2, waiting_claim("a")), permits(1, waiting_claim("a")));
    one.take(&first);
    assert_eq!((two.queued(&large), three.queued(&fair)), (1, 2));
    let small = barging(permits(1, claim("a")));
    passes(&three, &small);
    three.refused(&barging(permits(1, claim("a"))));
    assert_eq!(three.release(&small), Released::Released);
    [(&two, &large), (&three, &fair)].into_iter().for_each(|(by, claim)| by.denied(claim));
    assert_eq!(one.release(&first), Released::Released);
    two.take(&large);
    three.take(&fair);
}

/// What does not fit waits at its place in the queue, and may pass the others when it asks again.
pub fn a_claim_that_does_not_fit_takes_its_place(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (three_of_four, last) = (permits(3, claim("a")), permits(1, claim("a")));
    [&three_of_four, &last].into_iter().for_each(|claim| _ = one.take(claim));
    let (large, small) = (permits(2, waiting_claim("a")), barging(permits(1, waiting_claim("a"))));
    let fair = permits(1, waiting_claim("a"));
    assert_eq!((two.queued(&large), three.queued(&small), two.queued(&fair)), (1, 2, 3));
    assert_eq!(one.release(&last), Released::Released);
    [&large, &fair].into_iter().for_each(|claim| two.denied(claim));
    passes(&three, &small);
    [&large, &fair].into_iter().for_each(|claim| two.denied(claim));
    assert_eq!(three.release(&small), Released::Released);
    assert_eq!(one.release(&three_of_four), Released::Released);
    two.take(&large);
    two.take(&fair);
}

/// The holder has died, and a waiter would fit now: it is next, and not the barging claim that finds this out.
pub fn those_who_fit_are_served_first(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let waits = writer(waiting_claim("a"));
    one.take(&lasting(AMPLE, writer(claim("a"))));
    assert_eq!(two.queued(&waits), 1);
    bench.elapse(AMPLE + AMPLE / 5);
    three.denied(&barging(reader(claim("a"))));
    two.take(&waits);
    assert_eq!(two.release(&waits), Released::Released);
    three.take(&barging(reader(claim("a"))));
}

/// A client of this facade, and one of the other.
fn two_clients(bench: &Bench) -> [Client; 2] {
    [bench.client(), bench.client_of(bench.facade().other())]
}

/// With the option `barging`, readers of any client read although a writer waits, in the reading client too.
pub fn the_option_lets_readers_pass(bench: &Bench) {
    let clients @ [one, two] = &two_clients(bench);
    let first = one.read("a", &options(LONG)).acquire().unwrap();
    let waits = two.write("a", &options(LONG)).wait();
    let third = bench.client();
    bench.have_places(1, || reader(waiting_claim("a")));
    for client in [one, &third] {
        let guard = client.read("a", &options(LONG).barging()).try_acquire().unwrap().expect("it passes the writer");
        guard.verify().unwrap();
        guard.release().unwrap();
    }
    assert!(third.read("a", &options(LONG).barging().fair()).try_acquire().unwrap().is_none());
    first.release().unwrap();
    bench.until("the writer has its turn", || waits.is_finished());
    waits.outcome().unwrap().release().unwrap();
    for client in clients {
        client.try_acquire("a", &options(LONG)).unwrap().expect("nobody holds").release().unwrap();
    }
}

/// With the option `barging`, small requests of any client pass a large one that waits, in its own client too.
pub fn the_option_lets_small_requests_pass(bench: &Bench) {
    let [one, two] = two_clients(bench);
    let semaphore = |client: &Client| client.semaphore("a", LIMIT, &options(LONG));
    let first = semaphore(&one).acquire_many(3).unwrap();
    let large = semaphore(&two).wait_for_many(2);
    bench.have_places(1, || permits(1, waiting_claim("a")));
    for client in [&one, &two] {
        let small = client.semaphore("a", LIMIT, &options(LONG).barging());
        small.try_acquire().unwrap().expect("it passes the large one").release().unwrap();
        assert!(semaphore(client).try_acquire().unwrap().is_none());
    }
    first.release().unwrap();
    bench.until("the large request is served", || large.is_finished());
    assert_eq!(large.outcome().unwrap().slots().len(), 2);
}
