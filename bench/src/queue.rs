//! What a step at a queue costs the server, by how many wait there: the times of our scripts, as the server's slow log has them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use lock_core::{Certainty, Claim, Fairness, LockName, Note, Owner, Queueing, ReleaseRequest, Terms, Ttl, Width};
use lock_redis::by_hand::ByHand;
use redis::{Cmd, Connection, Pipeline, Value};

use crate::figures::{Figure, Figures, median};
use crate::runs::{Ground, TTL};
use crate::server::Server;

/// How many wait. Ratios are those to the first.
const WAITING: [usize; 3] = [100, 1_000, 10_000];
/// How often each step is measured.
const SAMPLES: usize = 50;
/// How many commands go out together.
const TOGETHER: usize = 500;

/// The steps, in the order in which they are measured.
const STEPS: [(Figure, Figure); 4] = [
    (Figure::AskAgain, Figure::AskAgainGrowth),
    (Figure::Join, Figure::JoinGrowth),
    (Figure::HandOver, Figure::HandOverGrowth),
    (Figure::LeaveAtOnce, Figure::LeaveAtOnceGrowth),
];

impl Ground<'_> {
    /// The same steps at queues of different lengths.
    pub(crate) fn queue(&mut self) -> Result<Figures> {
        let server = &mut self.servers[0];
        let times = WAITING.map(|waiting| measure(server, waiting)).into_iter().collect::<Result<Vec<_>>>()?;
        let [shortest, longer @ .., longest] = times.as_slice() else { return Ok(Figures::default()) };
        let mut figures = Figures::default();
        for (step, (time, growth)) in STEPS.into_iter().enumerate() {
            let most = longer.iter().map(|times| times[step]).fold(longest[step], f64::max);
            figures = figures.with(time, longest[step]).with(growth, most / shortest[step]);
        }
        Ok(figures)
    }
}

/// The median times of the steps at a queue of so many, in microseconds.
fn measure(server: &mut Server, waiting: usize) -> Result<[f64; STEPS.len()]> {
    server.clear()?;
    let (mut line, mut rng) = (Line::new(server)?, Rng::with_seed(waiting as u64));
    let mut owners = (0..=waiting).map(|_| lock_host::new_owner()).collect::<Result<Vec<_>, _>>()?;
    // The first of them holds.
    line.run(owners.iter().map(|owner| line.scripts.acquire(&line.claim(*owner))).collect())?;
    let again: Vec<Owner> = (0..SAMPLES).map(|_| owners[rng.usize(1..owners.len())]).collect();
    let newcomers = (0..SAMPLES).map(|_| lock_host::new_owner()).collect::<Result<Vec<_>, _>>()?;
    let mut times = [0.0; STEPS.len()];
    times[0] = line.timed(server, &again, Step::Acquire)?;
    times[1] = line.timed(server, &newcomers, Step::Acquire)?;
    owners.extend(newcomers);
    let mut still = owners.split_off(SAMPLES);
    times[2] = line.timed(server, &owners, Step::Release)?;
    // The present holder stays; all others leave, in no particular order.
    still.remove(0);
    rng.shuffle(&mut still);
    times[3] = line.timed(server, &still, Step::Release)?;
    Ok(times)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire,
    Release,
}

/// The lock and the connection over which its scripts are sent.
struct Line {
    scripts: ByHand,
    connection: Connection,
    name: LockName,
    ttl: Ttl,
    note: Note,
}

impl Line {
    fn new(server: &Server) -> Result<Self> {
        let client = redis::Client::open(server.url())?;
        let mut connection = client.get_connection()?;
        ByHand::load().exec(&mut connection)?;
        let (name, ttl, note) = ("bench:queue".parse()?, Ttl::new(TTL)?, lock_host::note("")?);
        Ok(Self { scripts: ByHand::new(&client), connection, name, ttl, note })
    }

    fn claim(&self, owner: Owner) -> Claim {
        Claim {
            name: self.name.clone(),
            owner,
            terms: Terms::exclusive(self.ttl),
            width: Width::ONE,
            floor: None,
            note: self.note.clone(),
            queueing: Queueing::Wanted,
            replaces: None,
            fairness: Fairness::Fair,
        }
    }

    fn command(&self, owner: Owner, step: Step) -> Option<Cmd> {
        match step {
            Step::Acquire => self.scripts.acquire(&self.claim(owner)),
            Step::Release => {
                let (name, ttl, certainty) = (self.name.clone(), self.ttl, Certainty::Answered);
                self.scripts.release(&ReleaseRequest {
                    name,
                    owner,
                    terms: Terms::exclusive(ttl),
                    certainty,
                    keep: None,
                })
            }
        }
    }

    /// Sends commands, many together. A release that had nothing to release came too late, and what was measured is something else.
    fn run(&mut self, commands: Option<Vec<Cmd>>) -> Result<()> {
        for together in commands.context("a command cannot be sent")?.chunks(TOGETHER) {
            let mut pipeline = Pipeline::new();
            for command in together {
                pipeline.add_command(command.clone());
            }
            let answers: Vec<Value> = pipeline.query(&mut self.connection)?;
            ensure!(!answers.contains(&Value::Int(0)), "places were over before they were given up");
        }
        Ok(())
    }

    /// The median time of a step, taken by each of these in turn.
    fn timed(&mut self, server: &mut Server, owners: &[Owner], step: Step) -> Result<f64> {
        let commands = owners.iter().map(|owner| self.command(*owner, step)).collect();
        server.log_commands()?;
        self.run(commands)?;
        let scripts = server.logged_scripts()?;
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Ok(median(scripts.into_iter().map(|script| micros(script.took)).collect()))
    }
}
