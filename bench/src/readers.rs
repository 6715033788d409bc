//! What a step of a reader costs the server, by how many others read: the times of our scripts, as the server's slow log has them.

use anyhow::Result;
use lock_core::{Mode, Owner};

use crate::figures::{Figure, Figures};
use crate::runs::Ground;
use crate::server::Server;
use crate::steps::Steps;

/// How many others read. Ratios are those to the first.
const READING: [usize; 3] = [10, 1_000, 10_000];
/// How often each step is measured.
const SAMPLES: usize = 50;

/// The steps, in the order in which they are measured.
const STEPS: [(Figure, Figure); 3] = [
    (Figure::ReadBegins, Figure::ReadBeginsGrowth),
    (Figure::ReadRenewal, Figure::ReadRenewalGrowth),
    (Figure::ReadEnds, Figure::ReadEndsGrowth),
];

impl Ground<'_> {
    /// The same steps beside different numbers of readers.
    pub(crate) fn readers(&mut self) -> Result<Figures> {
        let server = &mut self.servers[0];
        let [few, more, most] = READING;
        let [few, more, most] = [measure(server, few)?, measure(server, more)?, measure(server, most)?];
        let steps = STEPS.into_iter().enumerate();
        Ok(steps.fold(Figures::default(), |figures, (step, (time, growth))| {
            figures.with(time, most[step]).with(growth, most[step].max(more[step]) / few[step])
        }))
    }
}

/// The median times of the steps beside so many readers, each of another client, in microseconds.
fn measure(server: &mut Server, reading: usize) -> Result<[f64; STEPS.len()]> {
    server.clear()?;
    let mut steps = Steps::new(server, Mode::Shared)?;
    steps.run(steps.acquires(&owners(reading)?))?;
    let newcomers = owners(SAMPLES)?;
    let (begins, granted) = steps.timed(server, steps.acquires(&newcomers))?;
    let (renews, _) = steps.timed(server, steps.renewals(&newcomers, granted))?;
    let (ends, _) = steps.timed(server, steps.releases(&newcomers))?;
    Ok([begins, renews, ends])
}

fn owners(count: usize) -> Result<Vec<Owner>> {
    (0..count).map(|_| Ok(lock_host::new_owner()?)).collect()
}
