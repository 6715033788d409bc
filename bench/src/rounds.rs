//! Who runs when: all subjects of a scenario in each round, in an order that is drawn afresh.

use std::env::current_exe;

use anyhow::Result;
use bench_measure::Subject;
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use crate::args::Args;
use crate::awake::Awake;
use crate::compared::title;
use crate::fail_over;
use crate::figures::Figures;
use crate::kind::Kind;
use crate::machine::Machine;
use crate::measured::Measured;
use crate::process::Programs;
use crate::results::Results;
use crate::runs::Ground;
use crate::scale::Scale;
use crate::scenario::Scenario;
use crate::server::Server;

/// All rounds of all scenarios.
pub(crate) struct Rounds {
    scenarios: Vec<&'static Scenario>,
    scale: Scale,
    programs: Programs,
    seed: u64,
    random: Rng,
    progress: ProgressBar,
    failures: Vec<String>,
}

impl Rounds {
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let (scenarios, scale) = (args.scenarios(), args.scale());
        let programs = Programs { own: current_exe()?, rslock: args.rslock.clone() };
        let runs =
            |scenario: &&Scenario| u64::from(scenario.rounds(&scale)) * subjects(scenario, &programs).len() as u64;
        let progress = ProgressBar::new(scenarios.iter().map(runs).sum());
        progress.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg:40}")?);
        let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
        Ok(Self { scenarios, scale, programs, seed, random: Rng::with_seed(seed), progress, failures: Vec::new() })
    }

    /// Runs them all.
    pub(crate) fn run(mut self) -> Result<Results> {
        let machine = Machine::look(Server::start().version()?);
        let mut measured = Vec::new();
        for scenario in self.scenarios.clone() {
            measured.push(self.scenario(scenario)?);
        }
        self.progress.finish_and_clear();
        let method = self.method();
        Ok(Results::new(machine, method, measured, self.failures))
    }

    fn scenario(&mut self, scenario: &'static Scenario) -> Result<Measured> {
        let programs = self.programs.clone();
        let _awake = scenario.keeps_cores_awake().then(Awake::all_cores).transpose()?;
        let servers = (0..scenario.servers()).map(|_| Server::start_with(scenario.replicas())).collect();
        let mut ground = Ground { servers, programs: &programs, scale: self.scale, folder: TempDir::new()? };
        let subjects = subjects(scenario, &programs);
        let mut found: Vec<(Subject, Vec<Figures>)> = subjects.iter().map(|subject| (*subject, Vec::new())).collect();
        for _ in 0..scenario.rounds(&self.scale) {
            if scenario.kind == Kind::FailOver {
                self.fail_over(&mut found);
                continue;
            }
            let mut order: Vec<_> = found.iter_mut().collect();
            self.random.shuffle(&mut order);
            for (subject, rounds) in order {
                let what = format!("{}: {}", scenario.name, title(*subject));
                self.progress.set_message(what.clone());
                // A round that failed keeps its place: the rounds of the others are compared with each other.
                rounds.push(ground.run(scenario, *subject).unwrap_or_else(|error| {
                    self.failures.push(format!("{what}: {error:#}"));
                    Figures::default()
                }));
                self.progress.inc(1);
            }
        }
        Ok(Measured::new(scenario, found))
    }

    /// One fail-over for all subjects, side by side.
    fn fail_over(&mut self, found: &mut [(Subject, Vec<Figures>)]) {
        self.progress.set_message("failover");
        let subjects: Vec<_> = found.iter().map(|(subject, _)| *subject).collect();
        let outages = fail_over::run(&subjects).unwrap_or_else(|error| {
            self.failures.push(format!("failover: {error:#}"));
            vec![Figures::default(); subjects.len()]
        });
        for ((_, rounds), outage) in found.iter_mut().zip(outages) {
            rounds.push(outage);
            self.progress.inc(1);
        }
    }

    fn method(&self) -> String {
        let Scale { span, rounds, contended_rounds, long_rounds, leases, held_for, fail_overs, .. } = self.scale;
        let rslock = if self.programs.rslock.is_none() { "; without rslock" } else { "" };
        format!(
            "Pairs: {span:?} in each of {rounds} rounds; hand-overs: in each of {contended_rounds}. {leases} leases held for \
             {held_for:?}; {fail_overs} fail-overs; all else: rounds: {long_rounds}. Order drawn with seed {}{rslock}",
            self.seed
        )
    }
}

fn subjects(scenario: &Scenario, programs: &Programs) -> Vec<Subject> {
    let measured = |subject: &Subject| match subject {
        Subject::Rslock | Subject::RslockEager => programs.rslock.is_some(),
        Subject::Bare
        | Subject::ByHand
        | Subject::ReadByHand
        | Subject::PermitByHand
        | Subject::Leasehold
        | Subject::Read
        | Subject::Permit
        | Subject::Chain0
        | Subject::Pool
        | Subject::SixteenthHeld
        | Subject::OneReplica
        | Subject::TwoReplicas
        | Subject::Dwell => true,
    };
    scenario.subjects().iter().copied().filter(measured).collect()
}
