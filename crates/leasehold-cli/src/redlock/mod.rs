//! `leasehold redlock`: sets up, shows and changes the deployment of a quorum.

pub(crate) mod args;
mod moving;
mod status;

use leasehold::Ttl;
use leasehold::redlock::Purpose;

use self::args::{InitArgs, Redlock};
use crate::exit::{Exit, Failure};
use crate::quorum::{Health, Quorum, config};
use crate::report::{print, say_warning};

/// Runs the subcommand.
pub(crate) fn run(task: &Redlock) -> Result<Exit, Failure> {
    match task {
        Redlock::Init(args) => init(args),
        Redlock::Status(args) => status::run(args),
        Redlock::Move(args) => moving::run(args),
    }
}

fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let config = config(&args.url)?;
    if config.max_ttl() < Ttl::DEFAULT {
        say_warning(&format!(
            "max_ttl={} is shorter than the default ttl of {}: programs that use the library must set a shorter ttl",
            config.max_ttl(),
            Ttl::DEFAULT
        ));
    }
    let quorum = Quorum::open(&config)?;
    let before = Health::of(&quorum.pass(Purpose::Look)?);
    if before.can_grant() {
        return print(&format!("nothing to do; locks can already be granted: {before}"));
    }
    let report = quorum.pass(Purpose::Init)?;
    for warning in report.warnings() {
        say_warning(&warning);
    }
    let after = Health::of(&report);
    if !after.can_grant() {
        report.check_reached()?;
        return Err(Failure::new(
            Exit::Unavailable,
            format!("some nodes were not initialised: {after}; they follow after max_ttl"),
        ));
    }
    print(&format!("the deployment is new: {after}"))
}
