//! What a step at a queue costs the server, by how many wait there: the times of our scripts, as the server's slow log has them.

use anyhow::Result;
use fastrand::Rng;
use lock_core::{Mode, Owner};

use crate::figures::{Figure, Figures};
use crate::runs::Ground;
use crate::server::Server;
use crate::steps::Steps;

/// How many wait. Ratios are those to the first.
const WAITING: [usize; 3] = [100, 1_000, 10_000];
/// How often each step is measured.
const SAMPLES: usize = 50;

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
    let (mut steps, mut rng) = (Steps::new(server, Mode::Exclusive)?, Rng::with_seed(waiting as u64));
    let mut owners = (0..=waiting).map(|_| lock_host::new_owner()).collect::<Result<Vec<_>, _>>()?;
    // The first of them holds.
    steps.run(steps.acquires(&owners))?;
    let again: Vec<Owner> = (0..SAMPLES).map(|_| owners[rng.usize(1..owners.len())]).collect();
    let newcomers = (0..SAMPLES).map(|_| lock_host::new_owner()).collect::<Result<Vec<_>, _>>()?;
    let (asks_again, _) = steps.timed(server, steps.acquires(&again))?;
    let (joins, _) = steps.timed(server, steps.acquires(&newcomers))?;
    owners.extend(newcomers);
    let mut still = owners.split_off(SAMPLES);
    let (hands_over, _) = steps.timed(server, steps.releases(&owners))?;
    // The present holder stays; all others leave, in no particular order.
    still.remove(0);
    rng.shuffle(&mut still);
    let (leaves, _) = steps.timed(server, steps.releases(&still))?;
    Ok([asks_again, joins, hands_over, leaves])
}
