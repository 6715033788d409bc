//! Who runs a server that refuses to run as root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Finish, must};

/// The user and the group that run a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account(Option<(u32, u32)>);

impl Account {
    /// The account of this name if this process runs as root; otherwise that of this process.
    pub(crate) fn instead_of_root(name: &str) -> Self {
        if id(&["-u"]) != 0 {
            return Self(None);
        }
        Self(Some((id(&["-u", name]), id(&["-g", name]))))
    }

    /// Makes a command run as this account.
    pub(crate) fn run(self, command: &mut Command) {
        if let Some((user, group)) = self.0 {
            // It may not even enter the home of root.
            command.uid(user).gid(group).env("HOME", "/");
        }
    }

    /// Gives the account a directory and everything in it, and lets nobody else in.
    pub(crate) fn own(self, directory: &Path) {
        must("protect a directory", fs::set_permissions(directory, fs::Permissions::from_mode(0o700)));
        self.own_tree(directory);
    }

    fn own_tree(self, path: &Path) {
        let Some((user, group)) = self.0 else { return };
        must("give away a file", chown(path, Some(user), Some(group)));
        if path.is_dir() {
            for entry in must("list a directory", fs::read_dir(path)) {
                self.own_tree(&must("list a directory", entry).path());
            }
        }
    }
}

/// What `id` says, which is the same on all systems.
fn id(arguments: &[&str]) -> u32 {
    let done = Command::new("id").args(arguments).finish();
    assert!(done.status.success(), "id {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    must("read what id says", String::from_utf8_lossy(&done.stdout).trim().parse())
}
