//! `leasehold zookeeper` and `leasehold etcd`: the base of the fencing tokens, at stores that count their writes.

use clap::{Args, Subcommand};
use leasehold::{BackendConfig, BackendError, FencingToken, etcd, zookeeper};
use serde_json::json;

use crate::args::token;
use crate::exit::{Exit, Failure};
use crate::report::{json, print};

const ZOOKEEPER_EXAMPLES: &str = "\
Examples:
  leasehold zookeeper base zookeeper://zk1,zk2,zk3/shop --above 1790412345678901

Each token is the sum of a base and a number that rises with the transactions of the ensemble. Servers restored from an old copy \
continue from an old transaction, so new tokens would be below old ones, and resources would refuse them. Give the highest token \
that was in use, as seen at the resource or in `leasehold show`. Clients end their sessions when they learn of the new base, and lose their leases: \
run this while no lock is in use.";

const ETCD_EXAMPLES: &str = "\
Examples:
  leasehold etcd base etcd://etcd1,etcd2,etcd3/shop --above 1790412345678901

Each token is the sum of a base and a number that rises with the revisions of the cluster. Servers restored from an old copy \
continue from an old revision, so new tokens would be below old ones, and resources would refuse them. Give the highest token \
that was in use, as seen at the resource or in `leasehold show`. Holders lose their leases at their next renewal: run this while no lock is in use.";

/// `leasehold zookeeper`.
#[derive(Debug, Subcommand)]
pub(crate) enum Zookeeper {
    /// Raise the base of the fencing tokens, after servers were restored from an old copy.
    #[command(after_help = ZOOKEEPER_EXAMPLES)]
    Base(BaseArgs),
}

/// `leasehold etcd`.
#[derive(Debug, Subcommand)]
pub(crate) enum Etcd {
    /// Raise the base of the fencing tokens, after servers were restored from an old copy.
    #[command(after_help = ETCD_EXAMPLES)]
    Base(BaseArgs),
}

/// `leasehold zookeeper base` and `leasehold etcd base`.
#[derive(Debug, Args)]
pub(crate) struct BaseArgs {
    /// URL of the store; pass a URL that contains a password through the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    url: String,
    /// All later tokens are above this one.
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    above: FencingToken,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `leasehold zookeeper`.
pub(crate) fn zookeeper(Zookeeper::Base(args): &Zookeeper) -> Result<Exit, Failure> {
    run(args, "ZooKeeper", |config, above| {
        if let BackendConfig::Zookeeper(config) = config {
            Some(zookeeper::blocking::raise_base(config, above))
        } else {
            None
        }
    })
}

/// Runs `leasehold etcd`.
pub(crate) fn etcd(Etcd::Base(args): &Etcd) -> Result<Exit, Failure> {
    run(args, "etcd", |config, above| {
        if let BackendConfig::Etcd(config) = config { Some(etcd::blocking::raise_base(config, above)) } else { None }
    })
}

/// Raises the base. `raise` does so at a store of this name, and answers `None` for others.
fn run(
    args: &BaseArgs,
    store: &str,
    raise: impl FnOnce(&BackendConfig, FencingToken) -> Option<Result<bool, BackendError>>,
) -> Result<Exit, Failure> {
    let refused = |message: String| Failure::new(Exit::Config, message);
    let config = BackendConfig::from_url(&args.url).map_err(|invalid| refused(invalid.to_string()))?;
    let raised = raise(&config, args.above).ok_or_else(|| refused(format!("this store is not {store}")))?;
    let raised = raised.map_err(|error| Failure::while_connected("cannot raise the base of the tokens", error))?;
    let above = args.above;
    if args.json {
        return print(&json(&json!({ "raised": raised, "above": above.get() }))?);
    }
    print(&match raised {
        true => format!("raised: all later tokens are above {above}"),
        false => format!("nothing to do: all tokens are above {above} already"),
    })
}
