//! A primary with two replicas, and three sentinels that replace it when it fails.

use std::fs;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::bounds::wait_for;
use crate::detour::Detour;
use crate::redis_answers::info;
use crate::redis_server::{free_port, installed};
use crate::{Certificates, Proxy, RedisOptions, RedisServer, must, signals, temp_dir};

/// The name of the primary.
pub const MASTER: &str = "mymaster";
/// The password of the servers, and that of the sentinels.
pub const PASSWORDS: (&str, &str) = ("sesame", "guarded");

/// How long the primary may be silent before it is replaced. Chosen: long enough for a loaded machine.
const DOWN_AFTER: Duration = Duration::from_millis(700);

/// Three servers and three sentinels. Dropping this kills them all.
#[derive(Debug)]
pub struct Trio {
    /// The first one is the primary in the beginning.
    pub servers: Vec<RedisServer>,
    /// Each knows all servers and the other sentinels.
    pub sentinels: Vec<Sentinel>,
}

/// A running sentinel. Dropping this kills it.
#[derive(Debug)]
pub struct Sentinel {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Trio {
    /// Starts all of them, and waits until they know each other.
    pub fn start() -> Self {
        Self::start_with(RedisOptions::default())
    }

    /// The same, with these options and a password for each server.
    pub fn start_with(options: RedisOptions) -> Self {
        let primary = server_with(options.clone());
        let port = primary.port();
        Self::around(primary, port, &options)
    }

    /// The same, with a proxy between the first primary and all others. Who is to stay with it has to know its own port.
    pub fn start_apart() -> (Self, Proxy) {
        let primary = server(&[]);
        let link = Proxy::start(primary.port());
        (Self::around(primary, link.port(), &RedisOptions::default()), link)
    }

    /// Everybody else reaches the primary at this port.
    fn around(primary: RedisServer, port: u16, options: &RedisOptions) -> Self {
        let replica = || server_with(options.clone().arguments(&["--replicaof", "127.0.0.1", &port.to_string()]));
        let servers = vec![primary, replica(), replica()];
        let followed = |server: &RedisServer| info(server).contains("master_link_status:up").then_some(());
        servers.iter().skip(1).for_each(|replica| wait_for("a replica follows", || followed(replica)));
        let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(port, PASSWORDS.0, &[])).collect();
        for sentinel in &sentinels {
            wait_for("the sentinel knows the others", || sentinel.knows("num-other-sentinels", "2").then_some(()));
            wait_for("the sentinel knows the replicas", || sentinel.knows("num-slaves", "2").then_some(()));
        }
        Self { servers, sentinels }
    }

    /// The URL of the primary, with the passwords.
    pub fn url(&self) -> String {
        self.url_at(Ipv4Addr::LOCALHOST)
    }

    /// Puts a proxy in front of each server and each sentinel, on an address of their own for all of them. Clients are told of that address
    /// only.
    pub fn detour(&self) -> Detour {
        let servers = self.servers.iter().map(RedisServer::port);
        Detour::around(servers.chain(self.sentinels.iter().map(Sentinel::port)), |host| self.url_at(host))
    }

    fn url_at(&self, host: Ipv4Addr) -> String {
        let ports: Vec<_> = self.sentinels.iter().map(Sentinel::port).collect();
        url_of(&ports).replace("127.0.0.1", &host.to_string())
    }

    /// The server that the sentinels name.
    pub fn primary(&self) -> &RedisServer {
        wait_for("a sentinel names the primary", || {
            let port = self.sentinels.iter().find_map(Sentinel::primary)?;
            self.servers.iter().find(|server| server.port() == port)
        })
    }

    /// Has the sentinels replace the primary, and waits until they all name the new one. Returns the old one, which takes
    /// writes for about ten more seconds.
    pub fn fail_over(&self) -> &RedisServer {
        let old = self.primary();
        wait_for("a sentinel begins a fail-over", || {
            let begun = self.sentinels.iter().find_map(|sentinel| sentinel.ask::<String>(&["FAILOVER", MASTER]));
            begun.filter(|answer| answer == "OK")
        });
        self.wait_for_another_than(old.port());
        old
    }

    /// Ends the replication, and keeps it from beginning again: a replica has what it has.
    pub fn part_replicas(&self) {
        for replica in &self.servers[1..] {
            replica.command::<()>(&["CONFIG", "SET", "masterauth", "wrong"]);
        }
        self.servers[0].command::<()>(&["CLIENT", "KILL", "TYPE", "replica"]);
        wait_for("the primary is alone", || info(&self.servers[0]).contains("connected_slaves:0").then_some(()));
    }

    /// Makes all servers replicas of the present primary: also one that is down, which is started again.
    pub fn rejoin(&mut self) {
        let port = self.primary().port();
        for server in &mut self.servers {
            if !server.is_running() {
                server.restart_with_data();
            }
            // The primary may be a replica again: the sentinels take a server that is slow for one that is down.
            server.command::<()>(&["CONFIG", "SET", "masterauth", PASSWORDS.0]);
            if server.port() != port {
                server.command::<()>(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
            }
        }
    }

    /// Waits until a fail-over can succeed: two servers follow the primary, and all sentinels find all of them well.
    pub fn wait_until_whole(&self) {
        wait_for("two replicas follow the primary, and the sentinels see it", || {
            let primary = self.primary();
            let is_followed = info(primary).matches("state=online").count() == 2;
            (is_followed && self.sentinels.iter().all(|sentinel| sentinel.is_content_with(primary))).then_some(())
        });
    }

    /// Kills the primary, and returns its port.
    pub fn kill_primary(&mut self) -> u16 {
        let port = self.primary().port();
        self.servers.iter_mut().filter(|server| server.port() == port).for_each(RedisServer::kill);
        port
    }

    /// Waits until all sentinels name another server than the one at this port.
    pub fn wait_for_another_than(&self, port: u16) {
        for sentinel in &self.sentinels {
            wait_for("the sentinel names another primary", || sentinel.primary().filter(|named| *named != port));
        }
    }
}

impl Sentinel {
    /// Starts a sentinel that names this server, and waits until it answers.
    pub fn watching(server: &RedisServer) -> Self {
        Self::start(server.port(), PASSWORDS.0, &[])
    }

    /// The same, but it reaches no server and no other sentinel: it names this server whatever happens.
    pub fn cut_off(server: &RedisServer) -> Self {
        Self::start(server.port(), "wrong", &[])
    }

    /// Starts a sentinel that names the server at this port, to which it connects with TLS. Returns its port for TLS as well.
    pub fn with_tls(primary: u16, certificates: &Certificates) -> (Self, u16) {
        let port = free_port();
        (Self::start(primary, PASSWORDS.0, &certificates.arguments(port)), port)
    }

    fn start(primary: u16, password: &str, arguments: &[String]) -> Self {
        let (directory, port) = (temp_dir(), free_port());
        let process = spawn(directory.path(), port, primary, password, arguments);
        let sentinel = Self { process, port, _directory: directory };
        wait_for("the sentinel answers", || sentinel.primary());
        sentinel
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Suspends the sentinel: it accepts connections and requests but never answers.
    pub fn stop(&self) {
        signals::stop(self.process.id());
    }

    /// Resumes a suspended sentinel.
    pub fn resume(&self) {
        signals::resume(self.process.id());
    }

    /// The port of the server that it names.
    fn primary(&self) -> Option<u16> {
        self.ask::<(String, u16)>(&["GET-MASTER-ADDR-BY-NAME", MASTER]).map(|(_, port)| port)
    }

    fn knows(&self, field: &str, value: &str) -> bool {
        let told = self.ask::<Vec<String>>(&["MASTER", MASTER]).unwrap_or_default();
        told.chunks(2).any(|pair| pair == [field, value])
    }

    /// Whether it names this primary, knows two replicas, and takes none of them for dead.
    fn is_content_with(&self, primary: &RedisServer) -> bool {
        let replicas: Vec<Vec<String>> = self.ask(&["REPLICAS", MASTER]).unwrap_or_default();
        let is_well = |replica: &Vec<String>| replica.chunks(2).any(|pair| pair == ["flags", "slave"]);
        self.primary() == Some(primary.port())
            && self.knows("flags", "master")
            && replicas.len() == 2
            && replicas.iter().all(is_well)
    }

    fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        let client = must("read the sentinel's URL", redis::Client::open(format!("redis://127.0.0.1:{}", self.port)));
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1)).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        redis::cmd("AUTH").arg(PASSWORDS.1).exec(&mut connection).ok()?;
        redis::cmd("SENTINEL").arg(words).query(&mut connection).ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The URL of the primary that the sentinels at these ports name, with the passwords. Free locks are granted at once, although
/// the deployment is new.
pub fn url_of(ports: &[u16]) -> String {
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let (servers, sentinels) = PASSWORDS;
    format!("redis+sentinel://:{servers}@{}/{MASTER}?sentinel_password={sentinels}&failover=grant", hosts.join(","))
}

/// Starts a server with the password of the servers.
pub fn server(arguments: &[&str]) -> RedisServer {
    server_with(RedisOptions::default().arguments(arguments))
}

fn server_with(options: RedisOptions) -> RedisServer {
    let options = options.require_password(PASSWORDS.0);
    RedisServer::start_with(options.arguments(&["--masterauth", PASSWORDS.0, "--repl-diskless-sync-delay", "0"]))
}

/// The same with certificates. Returns its port for TLS as well.
pub fn server_with_tls(certificates: &Certificates) -> (RedisServer, u16) {
    let port = free_port();
    let arguments = certificates.arguments(port);
    (server(&arguments.iter().map(String::as_str).collect::<Vec<_>>()), port)
}

fn spawn(directory: &Path, port: u16, primary: u16, password: &str, arguments: &[String]) -> Child {
    let sentinels = PASSWORDS.1;
    let down_after = DOWN_AFTER.as_millis();
    let text = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nrequirepass {sentinels}\nsentinel sentinel-pass {sentinels}\n\
         sentinel monitor {MASTER} 127.0.0.1 {primary} 2\nsentinel auth-pass {MASTER} {password}\n\
         sentinel down-after-milliseconds {MASTER} {down_after}\nsentinel failover-timeout {MASTER} 2000\n\
         sentinel parallel-syncs {MASTER} 2\n",
        directory.display()
    );
    let file = directory.join("sentinel.conf");
    must("write the configuration of a sentinel", fs::write(&file, text));
    let log = must("make the log of a sentinel", File::create(directory.join("sentinel.log")));
    let mut command = Command::new(installed());
    command.arg(&file).arg("--sentinel").args(arguments).stdin(Stdio::null());
    command.stdout(must("share the log of a sentinel", log.try_clone())).stderr(log);
    must("start a sentinel", command.spawn())
}
