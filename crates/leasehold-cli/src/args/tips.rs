//! The next step after a command line that is not understood, where the parser does not know it.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds the next step, if there is one to add.
pub(super) fn with_tip(mut error: Error) -> Error {
    if let Some(tip) = tip(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether an argument that is required is missing.
pub(super) fn lacks(error: &Error, argument: &str) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(missing, Some(ContextValue::Strings(all)) if all.iter().any(|one| one.starts_with(argument)))
}

/// Whether the command has no such option.
fn is_unknown_option(error: &Error, option: &str) -> bool {
    let unknown = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(unknown, Some(ContextValue::String(given)) if given == option)
}

/// Where the URL goes, if the command takes one.
fn tip_for_url(usage: &str) -> Option<&'static str> {
    if usage.contains("leasehold <COMMAND>") {
        return Some("--url comes after the command: leasehold ls --url URL");
    }
    usage.contains("<URL>").then_some("the URL stands alone, without --url, or in LEASEHOLD_URL")
}

fn tip(error: &Error) -> Option<&'static str> {
    if lacks(error, "<COMMAND>") {
        return Some("the first argument is the name of the lock: NAME -- COMMAND");
    }
    if lacks(error, "--token") {
        return Some("`leasehold show NAME` prints the token");
    }
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if is_unknown_option(error, "--url") {
        return tip_for_url(&usage);
    }
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand && usage.contains("leasehold <COMMAND>");
    let is_guessed = error.get(ContextKind::SuggestedSubcommand).is_some();
    (is_unknown && !is_guessed).then_some("`leasehold run NAME -- COMMAND` runs a command while it holds a lock")
}
