//! A majority forgets at once: nothing may be granted until the longest lease has expired; then the quorum recovers by
//! itself.

use std::thread;
use std::time::{Duration, Instant};

use stress::cast::TTL;
use stress::crew::Crew;
use stress::history::now;
use stress::hold::Hold;
use stress::part::Facade;
use stress::problem::Problem;
use stress::run::{await_workers, calm_down, ground, judge};
use stress::turn::Turn;

use crate::nodes::{MAX_TTL, MINORITY, NODES, Nodes};

/// How long it may take beyond the dwell until locks are granted again.
const BACK_WITHIN: Duration = Duration::from_secs(15);

#[test]
fn after_a_majority_forgot_nobody_is_granted_anything_for_the_longest_ttl() {
    let ground = ground(env!("CARGO_BIN_EXE_stress-worker"));
    let mut nodes = Nodes::start();
    // They know only their deployment: a node that does not know even that abstains for minutes.
    let losing = MINORITY..NODES;
    let fresh: Vec<_> = losing.clone().map(|node| nodes.node(node).server.copy_data()).collect();
    let posts = [Facade::Async, Facade::Blocking].map(|facade| nodes.post(facade, ""));
    let mut crew = Crew::start(ground, posts.into());
    await_workers(&crew);

    let before = now();
    losing.zip(&fresh).for_each(|(node, fresh)| nodes.node(node).server.restart_from(fresh));
    let loss = Loss { before, at: now() };
    await_next_grant(&crew, loss);
    nodes.await_votes();
    crew.ease();

    let mut problems = calm_down(&mut crew, &[]);
    problems.extend(granted_too_early(&crew.turns(), loss));
    judge(crew, &problems);
    nodes.nothing_is_left();
}

/// When a majority forgot.
#[derive(Clone, Copy, Debug)]
struct Loss {
    /// Before the first did.
    before: u64,
    /// When all had.
    at: u64,
}

impl Loss {
    /// The last moment of a turn under an earlier lease.
    fn old_until(self) -> u64 {
        self.at + nanos(TTL)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

/// Waits for a turn under a lease that can only have been granted after the loss.
fn await_next_grant(crew: &Crew, loss: Loss) {
    let deadline = Instant::now() + MAX_TTL + BACK_WITHIN;
    while !crew.turns().iter().any(|turn| turn.from > loss.old_until()) {
        assert!(Instant::now() < deadline, "nothing is granted any more");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Turns that began between the end of the last old lease and that of the dwell.
fn granted_too_early(turns: &[Turn], loss: Loss) -> Vec<Problem> {
    let dwell = loss.old_until()..loss.before + nanos(MAX_TTL);
    turns.iter().filter(|turn| dwell.contains(&turn.from)).map(|turn| Problem::Early(turn.clone())).collect()
}

#[test]
fn a_grant_within_the_dwell_is_found() {
    let second = nanos(Duration::from_secs(1));
    let turn =
        |from| Turn { lock: "hot".into(), who: "w".into(), hold: Hold::Write(1), since: from, from, until: from };
    let loss = Loss { before: 10 * second, at: 10 * second + 1 };
    let turns = [9, 10, 12, 13].map(|at| turn(at * second));
    assert_eq!(granted_too_early(&turns, loss), [Problem::Early(turn(12 * second))]);
}
