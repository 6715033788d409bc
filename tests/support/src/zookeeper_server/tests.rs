mod curators;
mod ensembles;

use std::env;
use std::path::Path;
use std::process::Command;

use super::curator::CuratorPeer;
use super::*;
use crate::bounds::wait_for;
use crate::{AfterDrop, Certificates, Fault, Finish, Proxy};

/// Where the test program, run again, tells where its server is before it ends.
const TOLD: &str = "TEST_SUPPORT_ZOOKEEPER_SERVER";
/// Longer than any wait here.
const LONG: Duration = Duration::from_secs(60);

fn with_a_node(options: ZookeeperOptions) -> ZookeeperServer {
    let server = ZookeeperServer::start_with(options);
    server.run(&["create", "/kept", "one"]);
    server
}

/// Whether a process works in a directory, which a server does.
fn is_used(directory: &Path) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.any(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
}

#[test]
fn a_zookeeper_server_keeps_or_loses_its_data_as_asked() {
    for options in [ZookeeperOptions::default(), ZookeeperOptions::default().volatile()] {
        let mut server = with_a_node(options);
        let (port, first) = (server.port(), server.pid());
        server.restart_with_data();
        assert_eq!(server.run(&["get", "/kept"]), "one");
        assert_eq!(server.port(), port);
        assert_ne!(server.pid(), first);
        server.restart_empty();
        assert_eq!(server.run(&["ls", "/"]), "[zookeeper]");
        assert_eq!(server.address(), format!("127.0.0.1:{port}"));
    }
}

#[test]
fn a_zookeeper_server_has_the_settings_that_it_is_started_with() {
    let settings = |server: &ZookeeperServer| four_letter(server.port(), "conf");
    let said = settings(&ZookeeperServer::start());
    for setting in ["tickTime=500", "minSessionTimeout=1000", "maxSessionTimeout=120000", "maxClientCnxns=0"] {
        assert!(said.lines().any(|line| line == setting), "{setting} is not in {said}");
    }
    let options = ZookeeperOptions::default().tick(Duration::from_millis(200)).settings(&["maxSessionTimeout=5000"]);
    let said = settings(&ZookeeperServer::start_with(options));
    for setting in ["tickTime=200", "minSessionTimeout=400", "maxSessionTimeout=5000"] {
        assert!(said.lines().any(|line| line == setting), "{setting} is not in {said}");
    }
}

#[test]
#[should_panic(expected = "Node does not exist: /nowhere")]
fn a_command_that_fails_on_a_zookeeper_server_says_why() {
    ZookeeperServer::start().run(&["get", "/nowhere"]);
}

#[test]
fn a_zookeeper_server_offers_tls_if_asked() {
    let certificates = Certificates::new();
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().tls(&certificates));
    let ask = |authority: &Path| {
        let mut client = Command::new("sh");
        let line = "printf srvr | openssl s_client -quiet -verify_return_error -CAfile \"$0\" -connect \"$1\"";
        client.args(["-c", line]).arg(authority).arg(format!("127.0.0.1:{}", server.secure_port()));
        String::from_utf8_lossy(&client.finish().stdout).into_owned()
    };
    assert!(ask(&certificates.authority()).contains("Mode: standalone"));
    assert_eq!(ask(&Certificates::new().authority()), "");
    assert!(server.is_serving());
}

#[test]
fn a_zookeeper_server_requires_a_password_if_asked() {
    let options = ZookeeperOptions::default().sasl_digest("bob", "sesame").require_sasl();
    let server = ZookeeperServer::start_with(options);
    let list = |password: &str| {
        let login = server.directory.path().join("client.conf");
        let text = "org.apache.zookeeper.server.auth.DigestLoginModule required username=\"bob\"";
        fs::write(&login, format!("Client {{ {text} password=\"{password}\"; }};")).unwrap();
        let property = format!("java.security.auth.login.config={}", login.display());
        programs::run_command(&server.address(), server.directory.path(), &[property], &["ls", "/"])
    };
    assert_eq!(list("sesame").unwrap(), "[zookeeper]");
    list("mustard").unwrap_err();
}

#[test]
fn a_suspended_zookeeper_server_answers_when_it_is_resumed() {
    let server = ZookeeperServer::start();
    server.stop();
    assert_eq!(four_letter(server.port(), "ruok"), "");
    assert!(!server.is_serving());
    server.resume();
    wait_for("the server answers", || four_letter(server.port(), "ruok") == "imok");
}

#[test]
fn a_proxy_leads_to_a_zookeeper_server() {
    let server = ZookeeperServer::start();
    let proxy = Proxy::start(server.port());
    assert!(server.is_at(proxy.port()));
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    assert!(!server.is_at(proxy.port()));
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_a_zookeeper_server() {
    let mut server = ZookeeperServer::start();
    let directory = server.directory.path().to_owned();
    assert!(is_used(&directory));
    server.kill();
    assert!(!is_used(&directory));
    server.kill();
    server.restart_with_data();
    server.stop();
    drop(server);
    assert!(!is_used(&directory));
    assert!(!directory.exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_zookeeper_server_ends_with_the_process_that_started_it() {
    let folder = crate::temp_dir();
    let told = folder.path().join("told");
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "zookeeper_server::tests::a_process_that_starts_a_zookeeper_server_is_killed"]);
    let ended = again.env(TOLD, &told).finish();
    assert!(!ended.status.success(), "{ended:?}");
    for directory in fs::read_to_string(&told).unwrap().lines() {
        wait_for("the process ends", || !is_used(Path::new(directory)));
        wait_for("its directory is removed", || !Path::new(directory).exists());
    }
}

/// Run again by the test above.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_starts_a_zookeeper_server_is_killed() {
    let Some(told) = env::var_os(TOLD) else { return };
    let server = ZookeeperServer::start();
    let peer = CuratorPeer::connect(&server.address(), LONG);
    let directories = [server.directory.path(), peer.directory()].map(|directory| directory.to_str().unwrap());
    assert!(directories.iter().all(|directory| is_used(Path::new(directory))));
    fs::write(told, directories.join("\n")).unwrap();
    crate::signals::kill_now(std::process::id());
}
