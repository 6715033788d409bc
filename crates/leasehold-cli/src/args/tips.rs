//! The next step after a command line that is not understood, where the parser does not know it.

use std::env::var_os;
use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error};

use super::Cli;

/// The longest part of a value that an error repeats, in characters. Chosen: more than any good value needs, and a few lines of a terminal.
const SHOWN_MAX: usize = 200;

/// Adds the next step, if there is one to add.
pub(super) fn with_tip(error: Error) -> Error {
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(variable) = unreadable_variable()
    {
        let problem = format!("{variable} is not UTF-8\n\nset it to valid UTF-8, or unset it");
        return Cli::command().error(ErrorKind::InvalidUtf8, problem);
    }
    let mut error = shortened(error);
    if let Some(tip) = tip(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The variable that an argument is taken from, if that is not UTF-8.
fn unreadable_variable() -> Option<String> {
    let commands = Cli::command();
    let variables = commands.get_subcommands().flat_map(Command::get_arguments).filter_map(Arg::get_env);
    let is_unreadable = |name: &&OsStr| var_os(name).is_some_and(|value| value.to_str().is_none());
    variables.into_iter().find(is_unreadable).map(|name| name.to_string_lossy().into_owned())
}

/// A value that is invalid because it is long is not repeated in full.
fn shortened(mut error: Error) -> Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && let Some((end, _)) = value.char_indices().nth(SHOWN_MAX)
    {
        let shown = format!("{}...", &value[..end]);
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
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

/// For commands that other programs have.
fn tip_for_word(error: &Error) -> Option<&'static str> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    match word.as_str() {
        "release" | "unlock" => {
            Some("`run` releases its lock itself, and `leasehold break NAME` ends the lease of somebody else")
        }
        "list" | "status" => Some("`leasehold ls` lists locks, and `leasehold show NAME` shows one"),
        _ => None,
    }
}

fn tip(error: &Error) -> Option<&'static str> {
    if lacks(error, "<COMMAND>") {
        return Some("the first argument is the name of the lock: NAME -- COMMAND");
    }
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if is_unknown_option(error, "--url") {
        return tip_for_url(&usage);
    }
    let is_unknown = error.kind() == ErrorKind::InvalidSubcommand && usage.contains("leasehold <COMMAND>");
    if let Some(tip) = tip_for_word(error).filter(|_| is_unknown) {
        return Some(tip);
    }
    let is_guessed = error.get(ContextKind::SuggestedSubcommand).is_some();
    (is_unknown && !is_guessed).then_some("`leasehold run NAME -- COMMAND` runs a command while it holds a lock")
}
