//! Where the locks are.

use std::path::PathBuf;

use clap::Args;

use crate::store::Origin;

/// What the parser calls the option.
pub(super) const URL: &str = "url";

/// Where the locks are.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// URL of the store; pass a URL that contains a password through the environment instead.
    ///
    /// For example redis://host, redis+sentinel://host,host,host/NAME, redis+cluster://host,host, redlock://host,host,host or
    /// sqlite:/path/to/file. The default is a file in your state directory: $XDG_STATE_HOME/leasehold/locks.db, or ~/.local/state/leasehold/locks.db.
    #[arg(id = URL, long = URL, value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// The configuration file that named it, if one did.
    #[arg(skip)]
    pub(crate) file: Option<PathBuf>,
}

impl StoreArgs {
    /// Where the store was named.
    pub(crate) fn origin(&self) -> Origin {
        match &self.file {
            Some(file) => Origin::File(file.clone()),
            None => self.url.as_ref().map_or(Origin::Default, |_| Origin::Given),
        }
    }
}
