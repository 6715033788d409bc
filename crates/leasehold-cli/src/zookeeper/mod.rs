//! `leasehold zookeeper`: the fencing tokens of an ensemble.

pub(crate) mod args;

use leasehold::BackendConfig;
use leasehold::zookeeper::ZookeeperConfig;
use leasehold::zookeeper::blocking::raise_base;
use serde::Serialize;

use self::args::{BaseArgs, Task, ZookeeperArgs};
use crate::exit::{Exit, Failure};
use crate::report::{json, print};

/// Runs the subcommand.
pub(crate) fn run(args: &ZookeeperArgs) -> Result<Exit, Failure> {
    match &args.task {
        Task::Base(args) => base(args),
    }
}

fn base(args: &BaseArgs) -> Result<Exit, Failure> {
    let (config, above) = (zookeeper(&args.url)?, args.above);
    let raised = raise_base(&config, above).map_err(|error| {
        let Failure { exit, message, .. } = error.into();
        let reason = message.strip_prefix("zookeeper connect: ").unwrap_or(&message);
        Failure::new(exit, format!("cannot raise the base of the tokens: {reason}"))
    })?;
    if args.json {
        return print(&json(&Report { raised, above: above.get() })?);
    }
    print(&match raised {
        true => format!("raised: all later tokens are above {above}"),
        false => format!("nothing to do: all tokens are above {above} already"),
    })
}

fn zookeeper(url: &str) -> Result<Box<ZookeeperConfig>, Failure> {
    let message = match BackendConfig::from_url(url) {
        Ok(BackendConfig::Zookeeper(config)) => return Ok(config),
        Ok(_) => "this store is no ZooKeeper, and has no base of its tokens".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    Err(Failure::new(Exit::Config, message))
}

/// What was done, for scripts.
#[derive(Debug, Serialize)]
struct Report {
    raised: bool,
    above: u64,
}
