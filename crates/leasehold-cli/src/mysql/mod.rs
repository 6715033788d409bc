//! `leasehold mysql`: sets up a database.

pub(crate) mod args;

use leasehold::mysql::setup;

use self::args::{MysqlArgs, SchemaArgs, Task};
use crate::exit::{Exit, Failure};
use crate::report::print;

/// Runs the subcommand.
pub(crate) fn run(args: &MysqlArgs) -> Result<Exit, Failure> {
    match &args.task {
        Task::Schema(args) => schema(args),
    }
}

fn schema(args: &SchemaArgs) -> Result<Exit, Failure> {
    let script = setup(&args.locker, &args.fencer);
    let script = script.map_err(|invalid| Failure::new(Exit::Usage, invalid.to_string()))?;
    print(script.trim_end())
}
