//! Reads a command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches};

use super::Cli;
use super::tips::{lacks, with_tip};
use crate::exit::Failure;

/// Why a command line is not carried out.
#[derive(Debug)]
pub(crate) enum Mistake {
    /// The line itself is invalid, or asks for help.
    Line(clap::Error),
    /// The user's defaults are invalid.
    Defaults(Failure),
}

impl From<clap::Error> for Mistake {
    fn from(error: clap::Error) -> Self {
        Self::Line(with_tip(error))
    }
}

/// Parses a command line, which begins with the name of the program, and fills in the user's defaults.
pub(crate) fn parse(line: &[OsString]) -> Result<Cli, Mistake> {
    let matches = Cli::command().try_get_matches_from(line)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let Some((task, matches)) = matches.subcommand() {
        if WORK.contains(&task) {
            refuse_name_after_dashes(line, task)?;
        }
        cli.command.fill(matches).map_err(Mistake::Defaults)?;
    }
    Ok(cli)
}

/// The subcommands that run a command under a lock.
const WORK: [&str; 2] = ["run", "elect"];

/// Whether a command line asks for JSON, even if it is invalid otherwise.
pub(crate) fn asks_for_json(line: &[OsString]) -> bool {
    line.iter().take_while(|word| *word != OsStr::new("--")).any(|word| word == OsStr::new("--json"))
}

/// The report file that a command line names, even if it is invalid otherwise.
///
/// Counts only what is certainly our own option, because the file is overwritten.
pub(crate) fn report_file(line: &[OsString]) -> Option<PathBuf> {
    let mut line = line.to_vec();
    let lenient = || {
        let relaxed =
            |command: clap::Command, task| command.mut_subcommand(task, |task| task.mut_args(accept_anything));
        WORK.into_iter().fold(Cli::command(), relaxed)
    };
    while let Err(error) = lenient().try_get_matches_from(&line)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(position) = line.iter().position(|word| word == OsStr::new(unknown))
    {
        line.remove(position);
    }
    let matches = lenient().ignore_errors(true).try_get_matches_from(&line).ok()?;
    let (_, work) = matches.subcommand().filter(|(task, _)| WORK.contains(task))?;
    work.get_one::<OsString>("report").map(PathBuf::from)
}

fn accept_anything(argument: Arg) -> Arg {
    if argument.get_action().takes_values() {
        argument.value_parser(clap::builder::OsStringValueParser::new()).required(false)
    } else {
        argument
    }
}

/// `run -- make deploy` would lock "make" and run "deploy".
fn refuse_name_after_dashes(line: &[OsString], task: &str) -> Result<(), clap::Error> {
    let Some(dashes) = line.iter().position(|word| word == OsStr::new("--")) else { return Ok(()) };
    let Err(error) = Cli::command().try_get_matches_from(&line[..dashes]) else { return Ok(()) };
    if lacks(&error, "<NAME>") {
        let problem = format!(
            "no name before `--`: the first argument is the name of the lock\n\n\
             for example: leasehold {task} nightly-report -- ./report.sh"
        );
        return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::*;

    #[test]
    fn the_name_stands_before_the_dashes() {
        let parsed = |line: &str| parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for good in ["leasehold run -n a -- make", "leasehold run a make -- x", "leasehold run -w 5s a -q -- make"] {
            assert!(parsed(good).is_ok(), "{good}");
        }
        for bad in ["leasehold run -n -- make deploy", "leasehold run -- a make", "leasehold run --ttl 9s -- a b"] {
            let Mistake::Line(error) = parsed(bad).unwrap_err() else { panic!("{bad}") };
            assert!(error.to_string().contains("no name before `--`"), "{error}");
        }
    }

    #[test]
    fn a_break_needs_a_name() {
        let said = |line: &str| match parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap_err() {
            Mistake::Line(error) => error.to_string(),
            Mistake::Defaults(failure) => failure.message,
        };
        assert!(said("leasehold break").contains("<NAME>"));
    }

    #[test]
    fn a_report_is_found_on_invalid_lines_and_never_among_the_words_of_the_command() {
        let asked = |line: &str| report_file(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "leasehold run --report f a -- true",
            "leasehold run --report=f",
            "leasehold run --ttl soon --report f a -- true",
            "leasehold run -n -w 3s --report f a -- true",
            "leasehold run --strange --report f -E 999 a true",
            "leasehold run a --report f",
            "leasehold run --report f --strange a -- make --report g",
        ] {
            assert_eq!(asked(line), Some("f".into()), "{line}");
        }
        for line in [
            "leasehold run --ttl soon a make --report f",
            "leasehold run --strange a -- make --report f",
            "leasehold run -- make --report f",
            "leasehold ls --report f",
            "leasehold run --report",
            "leasehold",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    #[test]
    fn the_default_ttl_fits_the_deployment() {
        let ttl = |line: &str| {
            let cli = parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap();
            let Command::Run(run) = cli.command else { panic!("not run") };
            run.work.ttl.get().as_secs()
        };
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s x true"), 20);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s --ttl 30s x true"), 30);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c x true"), 30);
        assert_eq!(ttl("leasehold run --url redis://a?failover=dwell&max_ttl=20s x true"), 20);
        assert_eq!(ttl("leasehold run --url redis://a?failover=dwell x true"), 30);
        assert_eq!(ttl("leasehold run --url redis://a x true"), 30);
    }

    /// Where lines are broken, columns are not aligned any more.
    #[test]
    fn examples_fit_a_terminal_of_80_columns() {
        let mut left = vec![Cli::command()];
        while let Some(command) = left.pop() {
            let help = command.get_after_long_help().or_else(|| command.get_after_help());
            let help = help.map(ToString::to_string).unwrap_or_default();
            let wide: Vec<_> = help.lines().filter(|line| line.starts_with("  ") && line.len() > 80).collect();
            assert!(wide.is_empty(), "{wide:#?}");
            left.extend(command.get_subcommands().cloned());
        }
    }

    /// The list of subcommands has a line for each.
    #[test]
    fn what_subcommands_do_fits_a_terminal_of_80_columns() {
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(about.len() <= 65, "{}: {about}", command.get_name());
        }
    }
}
