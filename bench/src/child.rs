//! The measured processes of our own.

mod bare;
mod blocking;
mod by_hand;
mod connection;
mod etcd;
mod mysql;
pub(crate) mod ours;
mod postgres;
mod quorum;
mod reads;
mod sqlite;
mod zookeeper;

use anyhow::{Result, bail};
use bench_measure::{Plan, Runtime, Subject, run};
use lock_core::{Limit, Mode};

/// Does the work of the plan in `argument`.
pub(crate) fn main(argument: Option<String>) -> Result<()> {
    let plan = Plan::from_argument(argument)?;
    if plan.runtime == Runtime::Blocking {
        return blocking::run(&plan);
    }
    match plan.subject {
        Subject::Bare if reads::is_wanted_by(&plan) => run(&plan, reads::Tokios::connect()),
        Subject::Leasehold if reads::is_wanted_by(&plan) => run(&plan, reads::Ours::connect()),
        Subject::Bare if sqlite::path(&plan).is_some() => run(&plan, sqlite::Bare::connect(&plan)),
        Subject::Bare if postgres::is_wanted_by(&plan) => run(&plan, postgres::Bare::connect(&plan)),
        Subject::Bare if mysql::is_wanted_by(&plan) => run(&plan, mysql::Bare::connect(&plan)),
        Subject::Bare if zookeeper::is_wanted_by(&plan) => run(&plan, zookeeper::Bare::connect(&plan)),
        Subject::Bare if etcd::is_wanted_by(&plan) => run(&plan, etcd::Bare::connect(&plan)),
        Subject::Bare => run(&plan, bare::Bare::connect(&plan)),
        Subject::ByHand if plan.servers.len() > 1 => run(&plan, quorum::ByHand::connect(&plan)),
        Subject::ByHand => run(&plan, by_hand::ByHand::connect(&plan, Mode::Exclusive)),
        Subject::ReadByHand => run(&plan, by_hand::ByHand::connect(&plan, Mode::Shared)),
        Subject::PermitByHand => run(&plan, by_hand::ByHand::connect(&plan, Mode::one_permit(Limit::ONE))),
        Subject::Leasehold | Subject::SixteenthHeld | Subject::OneReplica | Subject::TwoReplicas | Subject::Dwell => {
            run(&plan, ours::Ours::connect(&plan, ours::mutex, None))
        }
        Subject::Read => run(&plan, ours::Ours::connect(&plan, ours::read, None)),
        Subject::Permit => run(&plan, ours::Ours::connect(&plan, ours::permit, None)),
        Subject::Chain0 => run(&plan, ours::Ours::connect(&plan, ours::mutex, Some(0))),
        Subject::Pool => run(&plan, ours::Ours::pooled(&plan)),
        Subject::Rslock | Subject::RslockEager => bail!("rslock has a program of its own"),
    }
}
