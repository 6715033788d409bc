//! Looks the command up before the wait, so that a wrong one fails at once.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::exit::{Exit, Failure};

/// Looks a program up as the system will. What cannot be decided here is left to the system.
///
/// # Errors
/// Those of the system when it is executed: not found, or not executable.
pub(super) fn look_up(program: &OsStr, path: Option<&OsStr>) -> io::Result<()> {
    if program.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if program.as_bytes().contains(&b'/') {
        return executable(Path::new(program));
    }
    // If PATH is not set, the system uses its own default.
    let Some(path) = path else { return Ok(()) };
    let mut error = io::Error::from(Errno::NOENT);
    for directory in std::env::split_paths(path) {
        match executable(&directory.join(program)) {
            Ok(()) => return Ok(()),
            Err(denied) if denied.kind() == io::ErrorKind::PermissionDenied => error = denied,
            Err(_) => {}
        }
    }
    Err(error)
}

fn executable(program: &Path) -> io::Result<()> {
    if !fs::metadata(program)?.is_file() {
        return Err(Errno::ACCESS.into());
    }
    match accessat(CWD, program, Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => Err(Errno::ACCESS.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The failure for a program that the system does not execute.
pub(super) fn cannot_execute(program: &OsStr, error: &io::Error) -> Failure {
    let program = program.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        let advice = if program.contains(char::is_whitespace) {
            "quote each word by itself, or use sh -c '...'"
        } else {
            "check the spelling and PATH"
        };
        let message =
            format!("there is no command {program:?}, or the interpreter in its first line is missing; {advice}");
        return Failure::new(Exit::NotFound, message);
    }
    // A name without a slash is looked up in PATH, not in this directory.
    if program.contains('/') && Path::new(&*program).is_dir() {
        let message = format!("{program:?} is a directory and cannot be executed; name a program in it");
        return Failure::new(Exit::NotExecutable, message);
    }
    Failure::new(Exit::NotExecutable, format!("cannot execute {program:?}: {error}; make it executable"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn kind(program: &str, path: Option<&str>) -> Option<io::ErrorKind> {
        look_up(OsStr::new(program), path.map(OsStr::new)).err().map(|error| error.kind())
    }

    #[test]
    fn programs_are_found_as_the_system_finds_them() {
        let place = tempfile::tempdir().unwrap();
        let (plain, program) = (place.path().join("plain"), place.path().join("program"));
        for (file, mode) in [(&plain, 0o644), (&program, 0o755)] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (here, both) = (text(place.path()), format!("/no/such/folder:{}:/bin", text(place.path())));
        assert_eq!(kind(&text(&program), None), None);
        assert_eq!(kind("program", Some(&here)), None);
        assert_eq!(kind("sh", Some(&both)), None);
        assert_eq!(kind(&text(&plain), None), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind("plain", Some(&both)), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind(&here, None), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind("nowhere", Some(&both)), Some(io::ErrorKind::NotFound));
        assert_eq!(kind("./no/where", Some(&both)), Some(io::ErrorKind::NotFound));
        assert_eq!(kind("", Some(&both)), Some(io::ErrorKind::NotFound));
        assert_eq!(kind("nowhere", None), None, "left to the system");
    }
}
