//! Fills in what the command line leaves open.

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::store::{StoreArgs, URL};
use super::work::WorkArgs;
use super::{Command, RunArgs};
use crate::defaults::Defaults;
use crate::exit::{Exit, Failure};

impl Command {
    /// Fills in the user's defaults. `matches` are those of the subcommand.
    ///
    /// # Errors
    /// If the environment or the configuration file is invalid, which is read only for a command that uses it; or if the URL is
    /// empty.
    pub(super) fn fill(&mut self, matches: &ArgMatches) -> Result<(), Failure> {
        let Some(store) = self.store() else { return Ok(()) };
        store.refuse_nothing(matches)?;
        let defaults = Defaults::load()?;
        store.fill(&defaults);
        if let Self::Run(args) = self {
            args.fill(matches, defaults);
        } else if let Self::Elect(args) = self {
            args.work.fill(matches, &defaults);
        }
        Ok(())
    }

    fn store(&mut self) -> Option<&mut StoreArgs> {
        match self {
            Self::Run(args) => Some(&mut args.work.store),
            Self::Elect(args) => Some(&mut args.work.store),
            Self::Ls(args) => Some(&mut args.store),
            Self::Show(args) => Some(&mut args.store),
            Self::Watch(args) => Some(&mut args.store),
            Self::Dashboard(args) => Some(&mut args.store),
            Self::Doctor(args) => Some(&mut args.store),
            Self::Break(args) => Some(&mut args.store),
            Self::Limit(args) => Some(&mut args.store),
            Self::Aside(_) => None,
        }
    }
}

impl StoreArgs {
    /// Refuses a URL of no characters, as an unset variable leaves it: by default, locks exclude on this machine only.
    fn refuse_nothing(&mut self, matches: &ArgMatches) -> Result<(), Failure> {
        self.source = matches.value_source(URL);
        if self.url.as_deref() != Some("") {
            return Ok(());
        }
        let source = match self.source {
            Some(ValueSource::EnvVariable) => "LEASEHOLD_URL",
            _ => "--url",
        };
        let message =
            format!("{source} is empty; set the variable, or unset it to lock on this machine only (or omit --url)");
        Err(Failure::new(Exit::Config, message))
    }

    fn fill(&mut self, defaults: &Defaults) {
        if self.url.is_none()
            && let Some((url, file)) = &defaults.url
        {
            (self.url, self.file) = (Some(url.clone()), Some(file.clone()));
        }
    }
}

impl RunArgs {
    fn fill(&mut self, matches: &ArgMatches, defaults: Defaults) {
        self.work.fill(matches, &defaults);
        if !self.no_wait && self.wait.is_none() {
            self.wait = defaults.wait;
        }
    }
}

impl WorkArgs {
    fn fill(&mut self, matches: &ArgMatches, defaults: &Defaults) {
        let is_open = |option: &str| matches.value_source(option) == Some(ValueSource::DefaultValue);
        if is_open("ttl") {
            match defaults.ttl {
                Some(ttl) => self.ttl = ttl,
                None => self.shorten_default_ttl(),
            }
        }
        if let (true, Some(why)) = (is_open("why"), &defaults.why) {
            self.why.clone_from(why);
        }
    }
}
