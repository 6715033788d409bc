//! Defaults that a user sets: in the environment, or in a configuration file.

use std::env::var_os;
use std::ffi::OsString;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::clock::parse_duration;
use leasehold::inspect::Note;
use leasehold::{BackendConfig, Invalid, Ttl};
use rustix::process::geteuid;
use serde::Deserialize;
use toml::Spanned;

use crate::exit::{Exit, Failure};

/// Names the file. If it is set and empty, no file is read.
const CONFIG: &str = "LEASEHOLD_CONFIG";
/// The name where none is given.
const NAME: &str = "leasehold.toml";

/// The values where the command line says nothing.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// The store, and the file that names it.
    pub(crate) url: Option<(String, PathBuf)>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) wait: Option<Duration>,
    pub(crate) why: Option<String>,
}

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    url: Option<Spanned<String>>,
    ttl: Option<Spanned<String>>,
    wait: Option<Spanned<String>>,
    why: Option<Spanned<String>>,
}

/// A configuration file that was read.
#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    text: String,
    settings: Settings,
}

impl Defaults {
    /// Reads the environment and the file. A variable that is empty counts as not set; one that is set wins over the file.
    ///
    /// # Errors
    /// Those of the configuration, with the variable, or with line and column of the file.
    pub(crate) fn load() -> Result<Self, Failure> {
        let file = path()?.map(File::read).transpose()?.unwrap_or_default();
        let read_url =
            |url: &str| BackendConfig::from_url(url).map(|_| url.to_owned()).map_err(|invalid| invalid.to_string());
        let url = file.value(file.settings.url.as_ref(), read_url)?;
        Ok(Self {
            url: url.map(|url| (url, file.path.clone())),
            ttl: file.or_variable("LEASEHOLD_TTL", file.settings.ttl.as_ref(), ttl)?,
            wait: file
                .or_variable("LEASEHOLD_WAIT", file.settings.wait.as_ref(), |text| parse_duration("wait", text))?,
            why: file.or_variable("LEASEHOLD_WHY", file.settings.why.as_ref(), |text| {
                Note::check_why(text).map(|()| text.to_owned())
            })?,
        })
    }
}

impl File {
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let message = format!("cannot read {}: {error}; {REMEDY}", path.display());
            Failure::new(Exit::Config, message)
        })?;
        match toml::from_str(&text) {
            Ok(settings) => Ok(Self { path, text, settings }),
            // Its own text shows the line, which may hold a password.
            Err(error) => Err(broken(&path, &text, error.span(), &without_password(error.message().trim()))),
        }
    }

    /// The value of the variable, or that of the file.
    fn or_variable<T>(
        &self,
        variable: &str,
        setting: Option<&Spanned<String>>,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Failure> {
        let parse = |text: &str| parse(text).map_err(|invalid| without_password(&invalid.to_string()));
        match var_os(variable).filter(|value| !value.is_empty()) {
            Some(value) => {
                let read =
                    value.to_str().ok_or_else(|| "it is not UTF-8; set it to valid UTF-8, or unset it".to_owned());
                let failed = |problem| Failure::new(Exit::Config, format!("{variable}: {problem}"));
                read.and_then(parse).map(Some).map_err(failed)
            }
            None => self.value(setting, parse),
        }
    }

    fn value<T>(
        &self,
        setting: Option<&Spanned<String>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let read = |setting: &Spanned<String>| {
            parse(setting.get_ref()).map_err(|problem| broken(&self.path, &self.text, Some(setting.span()), &problem))
        };
        setting.map(read).transpose()
    }
}

const REMEDY: &str = "fix it, or name another file in LEASEHOLD_CONFIG";

/// The problem, unless it repeats a URL in a place where none belongs: that may contain a password.
fn without_password(problem: &str) -> String {
    let problem = if problem.contains("://") { "there is a URL where none belongs" } else { problem };
    problem.to_owned()
}

/// A mistake in a file, and its place.
fn broken(path: &Path, text: &str, span: Option<Range<usize>>, problem: &str) -> Failure {
    let place = span.map_or_else(String::new, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(", line {line}, column {column}")
    });
    Failure::new(Exit::Config, format!("{}{place}: {problem}; {REMEDY}", path.display()))
}

/// The file that is named, or the first of those that exist: in this directory, and in the user's configuration directory.
fn path() -> Result<Option<PathBuf>, Failure> {
    if let Some(named) = var_os(CONFIG) {
        return Ok(Some(named).filter(|named| !named.is_empty()).map(PathBuf::from));
    }
    let found = candidates(var_os("XDG_CONFIG_HOME"), var_os("HOME")).into_iter().find(|path| path.exists());
    found.iter().filter(|path| path.is_relative()).try_for_each(|path| trusted(path))?;
    Ok(found)
}

/// Refuses a file of this directory that another user may have put there: it chooses the store, so with it, a command that is run in
/// `/tmp` could exclude nobody. It is not passed over in silence, since without it the store could be another one, too.
fn trusted(path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::new(Exit::Config, format!("cannot read {}: {error}; {REMEDY}", path.display()));
    let (entry, file) = (path.symlink_metadata().map_err(failed)?, path.metadata().map_err(failed)?);
    let is_foreign = |found: &Metadata| ![0, geteuid().as_raw()].contains(&found.uid());
    let problem = if !file.is_file() {
        "it is not a regular file"
    } else if is_foreign(&entry) || is_foreign(&file) {
        "it belongs to another user"
    } else if file.mode() & 0o002 != 0 {
        "every user may write to it"
    } else {
        return Ok(());
    };
    let message = format!(
        "{} of this directory is not read: {problem}; to use it, name it in LEASEHOLD_CONFIG; to use none, set it to an empty value",
        path.display()
    );
    Err(Failure::new(Exit::Config, message))
}

/// # Source
/// XDG Base Directory Specification: a path that is not absolute counts as not set.
fn candidates(xdg_config_home: Option<OsString>, home: Option<OsString>) -> Vec<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute(xdg_config_home).or_else(|| absolute(home).map(|home| home.join(".config")));
    std::iter::once(NAME.into()).chain(own.map(|own| own.join("leasehold").join(NAME))).collect()
}

/// Reads a ttl that a command can have.
fn ttl(text: &str) -> Result<Ttl, Invalid> {
    Ttl::new(parse_duration("ttl", text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A variable that is not set.
    const UNSET: &str = "LEASEHOLD_NOT_SET";

    #[test]
    fn a_mistake_is_told_with_its_line_and_column() {
        let text = "# defaults\nurl = \"redis://h\"\nttl = \"soon\"\n";
        let file = File { path: "leasehold.toml".into(), text: text.into(), settings: toml::from_str(text).unwrap() };
        let said = file.or_variable(UNSET, file.settings.ttl.as_ref(), ttl).unwrap_err().message;
        assert!(said.starts_with("leasehold.toml, line 3, column 7: ") && said.contains("soon"), "{said}");
        assert!(toml::from_str::<Settings>("tll = \"3s\"").is_err());
    }

    #[test]
    fn the_file_of_the_book_is_read() {
        let files = test_support::pages::blocks_in("toml").into_iter().map(|block| block.code);
        let files: Vec<_> = files.filter(|code| code.starts_with("# leasehold.toml")).collect();
        assert!(!files.is_empty());
        for text in files {
            let file = File { path: "leasehold.toml".into(), settings: toml::from_str(&text).unwrap(), text };
            assert!(file.settings.url.as_ref().is_some_and(|url| BackendConfig::from_url(url.get_ref()).is_ok()));
            assert!(file.or_variable(UNSET, file.settings.ttl.as_ref(), ttl).is_ok());
            assert!(file.or_variable(UNSET, file.settings.wait.as_ref(), |text| parse_duration("wait", text)).is_ok());
            assert!(file.or_variable(UNSET, file.settings.why.as_ref(), Note::check_why).is_ok());
        }
    }

    #[test]
    fn a_password_is_not_shown_with_a_mistake() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leasehold.toml");
        for text in
            ["url = \"redis://app:sesame@h\" oops", "\"redis://app:sesame@h\" = 1", "ttl = \"redis://app:sesame@h\""]
        {
            std::fs::write(&path, text).unwrap();
            let read = File::read(path.clone());
            let said = read.and_then(|file| file.or_variable(UNSET, file.settings.ttl.as_ref(), ttl));
            let said = said.unwrap_err().message;
            assert!(said.contains("line 1, column ") && !said.contains("sesame"), "{said}");
        }
    }

    #[test]
    fn the_directory_comes_before_the_user() {
        let found = |xdg: Option<&str>, home: Option<&str>| candidates(xdg.map(Into::into), home.map(Into::into));
        let own = PathBuf::from("/x/leasehold/leasehold.toml");
        assert_eq!(found(Some("/x"), Some("/h")), [PathBuf::from(NAME), own]);
        assert_eq!(found(Some("x"), Some("/h"))[1], PathBuf::from("/h/.config/leasehold/leasehold.toml"));
        assert_eq!(found(None, None), [PathBuf::from(NAME)]);
    }
}
