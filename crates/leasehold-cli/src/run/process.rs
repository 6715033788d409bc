//! Our own binary, started again in another role.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The binary that runs now, even if its file was replaced meanwhile, which is why Linux is asked for the program and
/// not for its path.
pub(crate) fn ourselves(role: &str) -> io::Result<Command> {
    let this = Path::new("/proc/self/exe");
    let mut command = if this.exists() { Command::new(this) } else { Command::new(std::env::current_exe()?) };
    command.arg0("leasehold").arg(role).process_group(0);
    Ok(command)
}

/// Shows this process under its role's name, such as in `ps`; of no further meaning.
pub(crate) fn set_name(name: &std::ffi::CStr) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
