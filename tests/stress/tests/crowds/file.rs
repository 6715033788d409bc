//! Processes of both facades on locks of all kinds of one file, while they are killed and stopped.

use std::ops::Range;
use std::time::Duration;

use stress::cast::Cast;
use stress::crew::Crew;
use stress::run::{await_workers, calm_down, judge, storm};
use stress::storm::{Blow, Lingering, Nemesis, Storm};

use crate::{file_in, sound};

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(4);
/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(150)..Duration::from_millis(700);

struct Blows<'a> {
    crew: &'a mut Crew,
    storm: Storm<Blow, Lingering<Blow>>,
}

impl Nemesis for Blows<'_> {
    type Trouble = Blow;
    type Lasting = Lingering<Blow>;

    fn storm(&mut self) -> &mut Storm<Blow, Lingering<Blow>> {
        &mut self.storm
    }

    fn begin(&mut self, blow: Blow) {
        let worker = self.storm.rng.usize(..self.crew.workers.len());
        self.storm.hit(self.crew, blow, worker, blow);
    }

    fn end(&mut self, what: Lingering<Blow>) {
        self.storm.over(self.crew, what);
    }
}

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves() {
    let directory = test_support::temp_dir();
    let mut crew = sound(&file_in(directory.path()), &[Cast::Kinds; 4]);
    await_workers(&crew);
    let seed = crew.seed();
    let mut blows = Blows { crew: &mut crew, storm: Storm::new(seed, PAUSES) };
    blows.rage(&[Blow::Kill, Blow::FreezeBriefly, Blow::FreezePastTtl], storm(STORM));
    println!("took effect: {:?}", blows.storm.fired);
    // A file has no push between processes, so all seats get a turn only if locks are free at times.
    crew.ease();
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
}
