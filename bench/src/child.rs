//! The measured processes of our own.

mod bare;
mod blocking;
mod by_hand;
pub(crate) mod ours;
mod quorum;

use anyhow::{Result, bail};
use bench_measure::{Plan, Runtime, Subject, run};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

/// Does the work of the plan in `argument`.
pub(crate) fn main(argument: Option<String>) -> Result<()> {
    let plan = Plan::from_argument(argument)?;
    if plan.runtime == Runtime::Blocking {
        return blocking::run(&plan);
    }
    match plan.subject {
        Subject::Bare => run(&plan, bare::Bare::connect(&plan)),
        Subject::ByHand if plan.servers.len() > 1 => run(&plan, quorum::ByHand::connect(&plan)),
        Subject::ByHand => run(&plan, by_hand::ByHand::connect(&plan)),
        Subject::Leasehold => run(&plan, ours::Ours::connect(&plan, None)),
        Subject::Chain0 => run(&plan, ours::Ours::connect(&plan, Some(0))),
        Subject::Rslock | Subject::RslockEager => bail!("rslock has a program of its own"),
    }
}

/// The connection of both raw subjects: redis-rs' best for this, with the settings that this library uses itself.
async fn multiplexed(url: &str) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(1024);
    Ok(redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?)
}
