//! `leasehold mysql` and `leasehold postgres`: the SQL that sets up a database.

use clap::Subcommand;
use leasehold::{Invalid, mysql, postgres};

use crate::exit::{Exit, Failure};
use crate::report::print;

const MYSQL_EXAMPLES: &str = "\
Examples:
  leasehold mysql schema --locker app@% --fencer app@% | mariadb shop

Run the SQL once in an empty database, or in the one of your data, as the account that will own the tables. The locker and the \
fencer must already exist. Clients connect as the locker, which may run the procedures, but not read the secrets of lock owners. \
The fencer gets only the right to fence its transactions, with CALL leasehold_fence(NAME, TOKEN). If the first client may create \
tables and procedures, it makes them itself, and you need not run this.";

const POSTGRES_EXAMPLES: &str = "\
Examples:
  leasehold postgres schema | psql -v ON_ERROR_STOP=1 shop
  leasehold postgres schema --locker app --fencer app |
    psql -v ON_ERROR_STOP=1 shop

Run the SQL once, as the role that will own the tables. The locker and the fencer must already exist. Clients connect as the \
locker, which may run the functions, but not read the secrets of lock owners. The fencer gets only the right to fence its \
transactions, with SELECT leasehold.fence(NAME, TOKEN). If the first client may create a schema, it makes the tables itself, and \
you need not run this. To use another schema, clients add ?schema=NAME to their URL.";

/// `leasehold mysql`.
#[derive(Debug, Subcommand)]
pub(crate) enum Mysql {
    /// Print the SQL that makes the tables and procedures, and grants rights to accounts.
    #[command(after_help = MYSQL_EXAMPLES)]
    Schema {
        /// The account that acquires and releases locks.
        #[arg(long, value_name = "USER@HOST", default_value = "leasehold_locker@%")]
        locker: String,
        /// The account that fences transactions; it may be the same.
        #[arg(long, value_name = "USER@HOST", default_value = "leasehold_fencer@%")]
        fencer: String,
    },
}

/// `leasehold postgres`.
#[derive(Debug, Subcommand)]
pub(crate) enum Postgres {
    /// Print the SQL that makes the tables and functions, and grants rights to roles.
    #[command(after_help = POSTGRES_EXAMPLES)]
    Schema {
        /// The schema of the tables.
        #[arg(long, value_name = "NAME", default_value = "leasehold")]
        schema: String,
        /// The role that acquires and releases locks.
        #[arg(long, value_name = "ROLE", default_value = "leasehold_locker")]
        locker: String,
        /// The role that fences transactions; it may be the same.
        #[arg(long, value_name = "ROLE", default_value = "leasehold_fencer")]
        fencer: String,
    },
}

/// Runs `leasehold mysql`.
pub(crate) fn mysql(Mysql::Schema { locker, fencer }: &Mysql) -> Result<Exit, Failure> {
    script(mysql::setup(locker, fencer))
}

/// Runs `leasehold postgres`.
pub(crate) fn postgres(Postgres::Schema { schema, locker, fencer }: &Postgres) -> Result<Exit, Failure> {
    script(postgres::setup(schema, locker, fencer))
}

fn script(made: Result<String, Invalid>) -> Result<Exit, Failure> {
    print(made.map_err(|invalid| Failure::usage(&invalid))?.trim_end())
}
