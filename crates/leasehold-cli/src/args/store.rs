//! The store of a command.

use std::path::PathBuf;

use clap::Args;
use clap::parser::ValueSource;

use crate::secret::Exposed;
use crate::store::Origin;

/// What the parser calls the option.
pub(super) const URL: &str = "url";

/// Where the locks are.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// URL of the store; pass a URL that contains a password through the environment instead.
    ///
    /// For example redis://host, redis+sentinel://host,host,host/NAME, redis+cluster://host,host, redlock://host,host,host,
    /// postgres://host/database, mysql://host/database, zookeeper://host,host,host, etcd://host,host,host or sqlite:/path/to/file. The default is a file in your state directory: $XDG_STATE_HOME/leasehold/locks.db, or ~/.local/state/leasehold/locks.db.
    #[arg(id = URL, long = URL, value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Whether the URL came from the command line or the environment.
    #[arg(skip)]
    pub(super) source: Option<ValueSource>,
    /// The configuration file that named it, if one did.
    #[arg(skip)]
    pub(crate) file: Option<PathBuf>,
}

impl StoreArgs {
    /// Who else can read the password of the URL, if anybody can.
    pub(crate) fn exposed(&self) -> Option<Exposed> {
        let url = self.url.as_deref()?;
        match (&self.file, self.source) {
            (Some(file), _) => Exposed::in_file(url, file),
            (None, Some(ValueSource::CommandLine)) => Exposed::on_the_line(url),
            (None, _) => None,
        }
    }

    /// Where the store was named.
    pub(crate) fn origin(&self) -> Origin {
        match &self.file {
            Some(file) => Origin::File(file.clone()),
            None => self.url.as_ref().map_or(Origin::Default, |_| Origin::Given),
        }
    }
}
