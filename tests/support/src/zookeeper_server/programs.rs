//! Java, and what its programs and servers say.

use std::env;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Finish, must};

/// Where Debian puts what is written in Java. Each file names the others that it needs.
pub(super) const JARS: &str = "/usr/share/java";
/// How to install what is missing.
const INSTALL: &str = "apt-get install libzookeeper-java libcurator-recipes-java default-jdk-headless";
/// What a program is told that should start quickly and stay small: not to compile itself well. None leaves a file behind.
pub(super) const QUICK: &[&str] = &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx128m"];
/// What one is told whose speed is measured: nothing of its speed.
pub(super) const MEASURED: &[&str] = &["-XX:-UsePerfData"];
/// What nothing else names: the log, and two parts of TLS.
const MORE: [&str; 4] = ["slf4j-simple", "netty-codec", "netty-resolver", "netty-transport-native-unix-common"];

/// How long a server may take to answer a word. Chosen: one that is suspended costs a test no more.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// A program of these Java files and folders, which works in this directory and should start quickly.
pub(super) fn java(classes: &[PathBuf], directory: &Path, properties: &[String]) -> Command {
    java_with(QUICK, classes, directory, properties)
}

/// The same with arguments of its own.
pub(super) fn java_with(arguments: &[&str], classes: &[PathBuf], directory: &Path, properties: &[String]) -> Command {
    let more = MORE.map(jar);
    let classes = must("join the paths of Java", env::join_paths(classes.iter().chain(&more)));
    let mut command = Command::new(installed("java"));
    command.args(arguments).arg(format!("-Djava.io.tmpdir={}", directory.display()));
    command.args(properties.iter().map(|property| format!("-D{property}")));
    command.arg("-cp").arg(classes).current_dir(directory);
    command
}

/// A Java file of Debian.
pub(super) fn jar(name: &str) -> PathBuf {
    Path::new(JARS).join(format!("{name}.jar"))
}

/// Fails if what the tests need is not there.
pub(super) fn check(jar: &Path) {
    assert!(jar.is_file(), "there is no {}; install it with: {INSTALL}", jar.display());
}

/// A program of Java.
pub(super) fn installed(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("there is no {name}; install it with: {INSTALL}"))
}

/// What a server on 127.0.0.1 answers to a word of four letters, such as `srvr`, `mntr`, `cons`, `dump` or `ruok`. The sessions
/// and what they hold are in the `dump` of the leader. Empty if it does not answer within two seconds.
pub fn four_letter(port: u16, word: &str) -> String {
    ask(port, word).unwrap_or_default()
}

fn ask(port: u16, word: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut server = TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?;
    server.set_read_timeout(Some(ANSWERS_WITHIN))?;
    server.write_all(word.as_bytes())?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Runs a command of the client program, such as `get /path`, at these addresses. Returns what it prints, or why it failed.
#[track_caller]
pub(super) fn run_command(
    addresses: &str,
    directory: &Path,
    properties: &[String],
    words: &[&str],
) -> Result<String, String> {
    let mut client = java(&[jar("zookeeper")], directory, properties);
    client.args(["org.apache.zookeeper.ZooKeeperMain", "-server", addresses]).args(words);
    let done = client.finish();
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stdout);
    // It also tells of its connection, even after the answer.
    let is_answer =
        |line: &&str| !["Connecting to ", "WATCHER::", "WatchedEvent "].iter().any(|told| line.starts_with(told));
    Ok(said.lines().filter(is_answer).collect::<Vec<_>>().join("\n").trim().to_owned())
}
