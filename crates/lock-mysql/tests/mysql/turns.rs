//! Two transactions of one lease: they exclude each other, and a later turn ends the earlier ones.

use lock_core::{Answer, Claim, Width};

use mysql::prelude::Queryable;

use crate::support::{
    BRIEF, Place, SOON, Session, claim, code, dialect, end, lasting, low, meanwhile, releases, take,
    wait_for_the_end_of, wait_until_blocked,
};

const REFUSED: &str = "LH001";
const LATE: &str = "LH002";

fn several_turns() -> Claim {
    Claim { width: Width::for_waiters(4), ..claim("stock") }
}

/// A transaction that waits for one that is open. At this level, it sees what that one has committed.
fn begins_later(
    place: &Place,
    watcher: &Session,
    token: u64,
) -> std::thread::JoinHandle<Result<Session, mysql::Error>> {
    let session = place.session();
    session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").unwrap();
    let id = session.id();
    let later = meanwhile(move || session.begin("stock", token).map(|()| session));
    wait_until_blocked(watcher, id);
    later
}

#[test]
fn a_later_turn_under_one_lease_waits_for_the_earlier_one_which_is_refused_afterwards() {
    let place = Place::new();
    let (first, watcher) = (place.session(), place.watcher());
    let token = low(&take(&place.client(), &several_turns()));
    first.begin("stock", token).unwrap();
    let later = begins_later(&place, &watcher, token + 1);
    first.run("COMMIT").unwrap();
    end(later).unwrap().run("COMMIT").unwrap();
    assert_eq!(code(first.begin("stock", token)), REFUSED);
    first.begin("stock", token + 1).unwrap();
}

#[test]
fn a_turn_whose_transaction_was_rolled_back_refuses_nobody() {
    let place = Place::new();
    let (first, second) = (place.session(), place.session());
    let token = low(&take(&place.client(), &several_turns()));
    second.begin("stock", token + 1).unwrap();
    second.run("ROLLBACK").unwrap();
    first.begin("stock", token).unwrap();
}

#[test]
fn transactions_of_one_turn_are_no_victims_of_a_deadlock() {
    let place = Place::new();
    let (earlier, watcher) = (place.session(), place.watcher());
    let token = low(&take(&place.client(), &several_turns()));
    earlier.begin("stock", token).unwrap();
    let several: Vec<_> = (0..3).map(|_| begins_later(&place, &watcher, token + 1)).collect();
    earlier.run("COMMIT").unwrap();
    for later in several {
        end(later).unwrap().run("COMMIT").unwrap();
    }
}

/// What the transaction reads later would be as old as its first statement.
#[test]
fn a_transaction_that_has_read_before_another_one_ended_is_told_to_begin_again() {
    let place = Place::new();
    let [first, second] = [place.session(), place.session()];
    let token = low(&take(&place.client(), &several_turns()));
    for turn in [token, token + 1] {
        second.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION").unwrap();
        second.value::<i64>("SELECT COUNT(*) FROM leasehold_layout");
        first.begin("stock", turn).unwrap();
        first.run("COMMIT").unwrap();
        assert_eq!(code(second.fence("stock", turn)), LATE);
        second.run("ROLLBACK").unwrap();
        second.begin("stock", turn).unwrap();
        second.run("COMMIT").unwrap();
    }
}

/// Plain SQL looks for the lease before it waits.
#[test]
fn a_plain_fence_that_has_waited_at_repeatable_read_is_told_to_begin_again() {
    let place = Place::new();
    let (first, second, watcher) = (place.session(), place.session(), place.watcher());
    let token = low(&take(&place.client(), &several_turns()));
    first.begin("stock", token).unwrap();
    let id = second.id();
    let later = meanwhile(move || (code(second.begin("stock", token)), second));
    wait_until_blocked(&watcher, id);
    first.run("COMMIT").unwrap();
    let (told, second) = end(later);
    assert_eq!(told, LATE);
    second.begin("stock", token).unwrap();
}

/// Newer servers of MariaDB are set up like this.
#[test]
fn a_server_that_refuses_rows_that_have_changed_says_the_same() {
    let place = Place::new();
    let [first, second] = [place.session(), place.session()];
    let token = low(&take(&place.client(), &several_turns()));
    second.run(&format!("{}; START TRANSACTION", dialect().strict_snapshots)).unwrap();
    second.value::<i64>("SELECT COUNT(*) FROM leasehold_layout");
    first.begin("stock", token).unwrap();
    first.run("COMMIT").unwrap();
    assert_eq!(code(second.fence("stock", token)), LATE);
    second.run("ROLLBACK").unwrap();
    second.begin("stock", token).unwrap();
}

/// A return to one that was set before the fence undoes it, as a rollback does.
#[test]
fn a_fence_outlasts_a_return_to_a_savepoint_that_was_set_later() {
    for (is_later, is_fenced) in [(true, true), (false, false)] {
        let place = Place::new();
        let (client, user) = (place.client(), place.session());
        let token = low(&take(&client, &lasting(BRIEF, claim("stock"))));
        user.run("START TRANSACTION; SAVEPOINT mine").unwrap();
        user.fence("stock", token).unwrap();
        if is_later {
            user.run("SAVEPOINT mine").unwrap();
        }
        user.run("ROLLBACK TO mine").unwrap();
        wait_for_the_end_of(BRIEF);
        let answer = client.acquire(&claim("stock"), SOON);
        assert_eq!(matches!(answer, Ok(Answer::Busy { .. })), is_fenced, "{answer:?}");
    }
}

#[test]
fn a_procedure_of_the_user_may_fence_its_transaction() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    let held = claim("stock");
    let token = low(&take(&client, &held));
    let body = "START TRANSACTION; CALL leasehold_fence('stock', token); COMMIT;";
    let made = format!("CREATE PROCEDURE sell(IN token BIGINT) BEGIN {body} END");
    user.0.borrow_mut().query_drop(made).unwrap();
    user.run(&format!("CALL sell({token})")).unwrap();
    assert_eq!(code(user.run(&format!("CALL sell({})", token + 1))), REFUSED);
    user.run("ROLLBACK").unwrap();
    releases(&client, &held);
}
