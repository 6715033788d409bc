//! The command line of `leasehold mysql`.

use clap::{Args, Subcommand};

const SCHEMA_EXAMPLES: &str = "\
Examples:
  leasehold mysql schema --locker app@% --fencer app@% | mariadb shop

Run the SQL once in an empty database, or in the one of your data, as the account that is to own the tables. The other accounts \
must exist. Clients connect as the locker, which may run the procedures and read no table with the secrets of lock owners. The \
fencer may only begin its transactions with CALL leasehold_fence(NAME, TOKEN). Nothing has to be run where the first client may \
create tables and procedures: it makes them itself.";

/// `leasehold mysql`.
#[derive(Debug, Args)]
pub(crate) struct MysqlArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What to do for a database.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Print the SQL that makes the tables and procedures, and grants rights to accounts.
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(SchemaArgs),
}

/// `leasehold mysql schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The account that acquires and releases locks.
    #[arg(long, value_name = "USER@HOST", default_value = "leasehold_locker@%")]
    pub(crate) locker: String,
    /// The account that fences transactions; it may be the same.
    #[arg(long, value_name = "USER@HOST", default_value = "leasehold_fencer@%")]
    pub(crate) fencer: String,
}
