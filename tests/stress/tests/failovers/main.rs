//! Sentinels or the other servers of a cluster replace a primary while processes use its locks. Each test plays it with and without what
//! protects against two holders, and prints for how long there were two (`--nocapture`). Whatever happens to the locks, the
//! register refuses those who write too late.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod cluster;
mod killed;
mod partition;
mod planned;

use std::thread;
use std::time::Duration;

use leasehold::redis::{RedisConfig, declare_new};
use stress::cast::{Cast, LONGEST_TTL, Mistake};
use stress::check::{Rules, exclusion};
use stress::crew::{Crew, Ground, Post};
use stress::double::doubly_held;
use stress::history::{What, now};
use stress::part::Facade;
use stress::problem::{Problem, refusals};
use stress::register::lost_updates;
use stress::turn::Turn;
use test_support::bounds::within_at_most;
use test_support::sentinels::url_of;

/// The options of the clients.
type Setting = &'static str;

/// Free locks are granted at once, and nothing is acknowledged.
const BARE: Setting = "failover=grant";

/// How long a play may take. Each of its waits has a bound of its own.
const PLAY: Duration = Duration::from_secs(300);

/// Plays each setting, all at the same time: they mostly wait.
fn in_each<const N: usize>(settings: [Setting; N], play: fn(Setting)) {
    within_at_most(PLAY, "all settings", || {
        thread::scope(|scope| settings.map(|setting| scope.spawn(move || play(setting))).map(drop));
    });
}

/// The URL for clients of the sentinels at these ports, with the options of the setting.
fn url(ports: impl Iterator<Item = u16>, setting: Setting) -> String {
    let ports: Vec<_> = ports.collect();
    url_of(&ports).replace(BARE, setting)
}

/// A worker that reaches all servers itself.
fn post(facade: Facade, url: &str, cast: Cast) -> Post {
    Post { facade, url: url.to_owned(), proxies: Vec::new(), cast, mistake: Mistake::None }
}

/// Workers at a deployment that is declared new.
fn crew(ground: Ground, url: &str, posts: Vec<Post>) -> Crew {
    declare_new(&RedisConfig::from_url(url).unwrap()).unwrap();
    Crew::start(ground, posts)
}

fn ground() -> Ground {
    stress::run::ground(env!("CARGO_BIN_EXE_stress-worker"))
}

/// The turns of one worker.
fn turns_of(crew: &Crew, worker: usize) -> Vec<Turn> {
    stress::turn::turns(crew.workers[worker].name(), &crew.history_of(worker))
}

/// Whether a worker has had turns, and none of them goes on.
fn is_over(crew: &Crew, worker: usize) -> bool {
    let history = crew.history_of(worker);
    history.iter().any(|event| matches!(event.what, What::Has(_)))
        && matches!(history.last().unwrap().what, What::Ended(_) | What::Waits | What::Left(_))
}

/// How long ago this was.
fn since(moment: u64) -> Duration {
    Duration::from_nanos(now() - moment)
}

/// There was one holder at a time, with rising tokens.
fn one_holder(crew: &Crew) -> Vec<Problem> {
    let rules = Rules { losses: &[], changes: &[], ttl: LONGEST_TTL };
    exclusion(crew.turns(), rules)
}

/// What must hold no matter who has the locks.
fn judge(crew: Crew, setting: Setting, mut problems: Vec<Problem>) {
    let (turns, register) = (crew.turns(), &crew.register);
    println!(
        "{setting}: two holders for {:.1?}, {} turns, {} late writes refused",
        doubly_held(&turns),
        turns.len(),
        register.refused()
    );
    problems.extend(crew.histories().iter().flat_map(|(name, history)| refusals(name, history)));
    problems.extend(lost_updates(&register.entries()).into_iter().map(Problem::Lost));
    stress::run::judge(crew, &problems);
}
