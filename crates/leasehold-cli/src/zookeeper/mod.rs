//! `leasehold zookeeper`: the fencing tokens of an ensemble.

pub(crate) mod args;

use leasehold::BackendConfig;
use leasehold::zookeeper::blocking::raise_base;

use self::args::{Task, ZookeeperArgs};
use crate::base;
use crate::exit::{Exit, Failure};

/// Runs the subcommand.
pub(crate) fn run(args: &ZookeeperArgs) -> Result<Exit, Failure> {
    let Task::Base(args) = &args.task;
    base::run(args, "ZooKeeper", |config, above| {
        if let BackendConfig::Zookeeper(config) = config { Some(raise_base(config, above)) } else { None }
    })
}
