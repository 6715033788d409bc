//! MySQL itself, which the stable Debian does not have: the tests that run on MariaDB with each change run on it each night. It is unpacked
//! with all its libraries, so nothing of the system changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::step;

/// Where the tests look for the server.
const SERVER: &str = "target/servers/mysql/mysqld";
const PACKAGE: &str = "mysql-server-core";
/// The release of Debian that has it.
const RELEASE: &str = "sid";

/// Runs the tests of the backend on it.
pub(crate) fn run() -> Result<()> {
    unpack()?;
    step::cargo_with(
        ("LEASEHOLD_TEST_MYSQL", "1"),
        &["test", "--no-fail-fast", "--package", "lock-mysql", "--all-features", "--tests"],
    )
}

fn unpack() -> Result<()> {
    let server = step::root().join(SERVER);
    if server.exists() {
        return Ok(());
    }
    let place = server.parent().context("the server has no directory")?;
    let beside = place.with_extension("unpacking");
    fs::remove_dir_all(&beside).ok();
    for directory in ["state/lists/partial", "cache/archives/partial", "root"] {
        fs::create_dir_all(beside.join(directory))?;
    }
    download(&beside).with_context(|| format!("{PACKAGE} could not be downloaded; nothing was tested"))?;
    for package in fs::read_dir(beside.join("cache/archives"))?.filter_map(Result::ok).map(|entry| entry.path()) {
        if package.extension().is_some_and(|end| end == "deb") {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("--extract").arg(package).arg(beside.join("root"));
            step::run(unpack)?;
        }
    }
    fs::remove_dir_all(beside.join("cache"))?;
    fs::write(beside.join("mysqld"), start(place)?)?;
    fs::set_permissions(beside.join("mysqld"), Permissions::from_mode(0o755))?;
    fs::remove_dir_all(place).ok();
    // Last, and in one step, so that a server that is found above is complete.
    fs::rename(beside, place).context("the server could not be kept")
}

/// Downloads the package and all that it needs, for a system that has nothing.
fn download(place: &Path) -> Result<()> {
    fs::write(place.join("status"), "")?;
    fs::write(place.join("list"), format!("deb {} {RELEASE} main\n", archive()?))?;
    let file = |name: &str| place.join(name).display().to_string();
    let settings = [
        format!("Dir::State={}", file("state")),
        format!("Dir::State::status={}", file("status")),
        format!("Dir::Cache={}", file("cache")),
        format!("Dir::Etc::SourceList={}", file("list")),
        "Dir::Etc::SourceParts=-".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(settings.iter().flat_map(|setting| ["-o", setting])).args(arguments).stdout(Stdio::null());
        step::run(command)
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "--download-only", "--no-install-recommends", PACKAGE])
}

/// The archive that this system takes its packages from.
fn archive() -> Result<String> {
    let told =
        Command::new("apt-get").args(["indextargets", "--format", "$(SITE)", "Created-By: Packages"]).output()?;
    let archive = String::from_utf8_lossy(&told.stdout).lines().next().map(str::to_owned);
    let archive = archive.with_context(|| format!("{PACKAGE} comes from Debian's archive, and apt-get names none"))?;
    ensure!(
        archive.contains("debian"),
        "{PACKAGE} comes from Debian's archive, and apt-get takes packages from {archive}"
    );
    Ok(archive)
}

/// A script that starts the server with its own libraries.
fn start(place: &Path) -> Result<String> {
    let root = place.join("root/usr");
    let libraries = root.join("lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let unpacked =
        place.with_extension("unpacking").join("root/usr/lib").join(libraries.file_name().unwrap_or_default());
    let loader = fs::read_dir(unpacked)?.filter_map(Result::ok).map(|entry| entry.file_name());
    let loader = loader.into_iter().find(|name| name.to_string_lossy().starts_with("ld-linux"));
    let loader = libraries.join(loader.context("the package brought no loader")?);
    let (root, loader, libraries) = (root.display(), loader.display(), libraries.display());
    Ok(format!(
        "#!/bin/sh\n# `--no-defaults` has to come first.\nexec {loader} --library-path {libraries} {root}/sbin/mysqld --no-defaults \
         --basedir={root} --lc-messages-dir={root}/share/mysql --plugin-dir={root}/lib/mysql/plugin \"$@\"\n"
    ))
}
