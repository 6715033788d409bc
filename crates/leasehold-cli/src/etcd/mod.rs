//! `leasehold etcd`: the fencing tokens of a cluster.

pub(crate) mod args;

use leasehold::BackendConfig;
use leasehold::etcd::blocking::raise_base;

use self::args::{EtcdArgs, Task};
use crate::base;
use crate::exit::{Exit, Failure};

/// Runs the subcommand.
pub(crate) fn run(args: &EtcdArgs) -> Result<Exit, Failure> {
    let Task::Base(args) = &args.task;
    base::run(args, "etcd", |config, above| {
        if let BackendConfig::Etcd(config) = config { Some(raise_base(config, above)) } else { None }
    })
}
