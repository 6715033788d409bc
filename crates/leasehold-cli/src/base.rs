//! The base of the fencing tokens, at stores that count their writes.

use clap::Args;
use leasehold::{BackendConfig, BackendError, FencingToken};
use serde::Serialize;

use crate::args::token;
use crate::exit::{Exit, Failure};
use crate::report::{json, print};

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
    pub(crate) json: bool,
}

/// Raises the base. `raise` does so at a store of this name, and answers `None` for others.
pub(crate) fn run(
    args: &BaseArgs,
    store: &str,
    raise: impl FnOnce(&BackendConfig, FencingToken) -> Option<Result<bool, BackendError>>,
) -> Result<Exit, Failure> {
    let refused = |message: String| Failure::new(Exit::Config, message);
    let config = BackendConfig::from_url(&args.url).map_err(|invalid| refused(invalid.to_string()))?;
    let raised = raise(&config, args.above).ok_or_else(|| refused(format!("this store is no {store}")))?;
    let raised = raised.map_err(|error| {
        let Failure { exit, message, .. } = error.into();
        let reason = message.split_once(" connect: ").map_or(&*message, |(_, reason)| reason);
        Failure::new(exit, format!("cannot raise the base of the tokens: {reason}"))
    })?;
    let above = args.above;
    if args.json {
        return print(&json(&Report { raised, above: above.get() })?);
    }
    print(&match raised {
        true => format!("raised: all later tokens are above {above}"),
        false => format!("nothing to do: all tokens are above {above} already"),
    })
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Report {
    raised: bool,
    above: u64,
}
