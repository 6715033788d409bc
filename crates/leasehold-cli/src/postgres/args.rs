//! The command line of `leasehold postgres`.

use clap::{Args, Subcommand};

const SCHEMA_EXAMPLES: &str = "\
Examples:
  leasehold postgres schema | psql -v ON_ERROR_STOP=1 shop
  leasehold postgres schema --locker app --fencer app |
    psql -v ON_ERROR_STOP=1 shop

Run the SQL once, as the role that is to own the tables. The other roles must exist. Clients connect as the locker, which may run \
the functions and read no table with the secrets of lock owners. The fencer may only begin its transactions with \
SELECT leasehold.fence(NAME, TOKEN). Nothing has to be run where the first client may create a schema: it makes the tables \
itself. To use another schema, clients add ?schema=NAME to their URL.";

/// `leasehold postgres`.
#[derive(Debug, Args)]
pub(crate) struct PostgresArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What to do for a database.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Print the SQL that makes the tables and functions, and grants rights to roles.
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema(SchemaArgs),
}

/// `leasehold postgres schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The schema of the tables.
    #[arg(long, value_name = "NAME", default_value = "leasehold")]
    pub(crate) schema: String,
    /// The role that acquires and releases locks.
    #[arg(long, value_name = "ROLE", default_value = "leasehold_locker")]
    pub(crate) locker: String,
    /// The role that fences transactions; it may be the same.
    #[arg(long, value_name = "ROLE", default_value = "leasehold_fencer")]
    pub(crate) fencer: String,
}
