//! Our scripts for one lock, sent many together, and how long each took as the server's slow log has it.

use anyhow::{Context, Result, ensure};
use lock_core::{
    Certainty, Claim, Evidence, Fairness, Lease, LockName, Mode, NameKind, Note, Owner, Queueing, ReleaseRequest,
    Slots, Terms, TokenRange, Ttl, Width,
};
use lock_redis::by_hand::ByHand;
use redis::{Cmd, Connection, Pipeline, Value};

use crate::figures::median;
use crate::runs::TTL;
use crate::server::Server;

/// How many commands go out together.
const TOGETHER: usize = 500;

/// The lock and the connection over which its scripts are sent.
pub(crate) struct Steps {
    scripts: ByHand,
    connection: Connection,
    name: LockName,
    terms: Terms,
    note: Note,
}

impl Steps {
    pub(crate) fn new(server: &Server, mode: Mode) -> Result<Self> {
        let client = redis::Client::open(server.url())?;
        let mut connection = client.get_connection()?;
        ByHand::load().exec(&mut connection)?;
        let (name, terms) = ("bench:queue".parse()?, Terms { mode, ttl: Ttl::new(TTL)? });
        Ok(Self { scripts: ByHand::new(&client), connection, name, terms, note: lock_host::note("")? })
    }

    /// Claims that wait in the queue where they have to.
    pub(crate) fn acquires(&self, owners: &[Owner]) -> Option<Vec<Cmd>> {
        owners.iter().map(|owner| self.acquire(*owner)).collect()
    }

    /// Releases of what they hold, or of their places.
    pub(crate) fn releases(&self, owners: &[Owner]) -> Option<Vec<Cmd>> {
        owners.iter().map(|owner| self.release(*owner)).collect()
    }

    /// Renewals of what readers were granted.
    pub(crate) fn renewals(&self, owners: &[Owner], granted: Vec<Value>) -> Option<Vec<Cmd>> {
        owners.iter().zip(granted).map(|(owner, granted)| self.renew(*owner, granted)).collect()
    }

    fn acquire(&self, owner: Owner) -> Option<Cmd> {
        self.scripts.acquire(&Claim {
            name: self.name.clone(),
            owner,
            terms: self.terms,
            width: Width::ONE,
            floor: None,
            note: self.note.clone(),
            queueing: Queueing::Wanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        })
    }

    fn release(&self, owner: Owner) -> Option<Cmd> {
        self.scripts.release(&ReleaseRequest {
            name: self.name.clone(),
            owner,
            terms: self.terms,
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        })
    }

    fn renew(&self, owner: Owner, granted: Value) -> Option<Cmd> {
        let (_, low, high, _, _): (String, u64, u64, String, u64) = redis::from_redis_value(granted).ok()?;
        let tokens = TokenRange::new(low.try_into().ok()?, high.try_into().ok()?).ok()?;
        let (name, slots) = (self.name.clone(), Slots::NONE);
        self.scripts.renew(&Lease { name, owner, tokens, terms: self.terms, slots })
    }

    /// Sends commands, many together. What had ended before its renewal or release came too late: something else was measured then.
    pub(crate) fn run(&mut self, commands: Option<Vec<Cmd>>) -> Result<Vec<Value>> {
        let (commands, mut all) = (commands.context("a command cannot be sent")?, Vec::new());
        for together in commands.chunks(TOGETHER) {
            let mut pipeline = Pipeline::new();
            for command in together {
                pipeline.add_command(command.clone());
            }
            all.extend(pipeline.query::<Vec<Value>>(&mut self.connection)?);
        }
        let over = [Value::Int(0), Value::Array(vec![Value::Int(0)])];
        ensure!(
            !all.iter().any(|answer| over.contains(answer)),
            "leases or places were over before they were given up"
        );
        Ok(all)
    }

    /// The median time of the scripts that commands run, in microseconds.
    pub(crate) fn timed(&mut self, server: &mut Server, commands: Option<Vec<Cmd>>) -> Result<(f64, Vec<Value>)> {
        server.log_commands()?;
        let answers = self.run(commands)?;
        let times = server.logged_scripts()?.into_iter().map(|script| script.took.as_secs_f64() * 1e6);
        Ok((median(times.collect()), answers))
    }
}
