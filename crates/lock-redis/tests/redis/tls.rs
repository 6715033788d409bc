//! Servers and sentinels with certificates. A process trusts the authorities that it found first, so clients have their own.

use std::env;
use std::process::Command;

use test_support::sentinels::{MASTER, PASSWORDS, server_with_tls};
use test_support::{Certificates, Cluster, Finish, Sentinel};

use crate::support::{connecting, hand_over};

/// Tells the test program that it is a client, and of which URL.
const VARIABLE: &str = "LEASEHOLD_TLS_TEST_URL";
/// What the client prints before its results.
const TOLD: &str = "the client says: ";

/// Connects with both facades, in a process that trusts this authority, and returns what they say.
fn clients(trusted: &Certificates, url: &str) -> String {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "tls::client_process", "--nocapture"]);
    let output = process.env(VARIABLE, url).env("SSL_CERT_FILE", trusted.authority()).finish();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter_map(|line| line.split_once(TOLD)).map(|(_, told)| format!("{told}\n")).collect()
}

/// Plays the clients, if this process was started as such.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn client_process() {
    let Ok(url) = env::var(VARIABLE) else { return };
    for (facade, outcome) in connecting(&url) {
        match outcome {
            Ok(client) => {
                hand_over(&client, facade);
                println!("{TOLD}{facade}: granted");
            }
            Err(error) => println!("{TOLD}{facade}: {:?} {error}", error.kind()),
        }
    }
}

/// The URL of the primary that the sentinel at this port names.
fn url(port: u16) -> String {
    let (servers, sentinels) = PASSWORDS;
    format!("rediss+sentinel://:{servers}@127.0.0.1:{port}/{MASTER}?sentinel_password={sentinels}&failover=grant")
}

#[track_caller]
fn are_refused(told: &str, whose: &str) {
    let refusal =
        format!("Config redis connect: the certificate of {whose} is not accepted; make the system trust the server's");
    assert_eq!(told.matches(&refusal).count(), 2, "{told}");
}

#[test]
fn the_servers_of_a_cluster_are_reached_with_tls_and_must_be_trusted() {
    let (trusted, other) = (Certificates::new(), Certificates::new());
    let (cluster, port) = Cluster::of_one_with_tls(&trusted);
    let url = cluster.url().replace("redis+", "rediss+");
    let url = url.replace(&cluster.servers[0].port().to_string(), &port.to_string());
    assert_eq!(clients(&trusted, &url), "async: granted\nblocking: granted\n");
    are_refused(&clients(&other, &url), &format!("rediss://127.0.0.1:{port}"));
}

#[test]
fn sentinels_and_their_servers_are_reached_with_tls_and_both_must_be_trusted() {
    let (trusted, other) = (Certificates::new(), Certificates::new());
    let (server, server_port) = server_with_tls(&trusted);
    let (_sentinel, port) = Sentinel::with_tls(server_port, &trusted);
    assert_eq!(clients(&trusted, &url(port)), "async: granted\nblocking: granted\n");
    assert!(server.command::<bool>(&["EXISTS", "leasehold:counter"]), "they were granted by another server");

    are_refused(&clients(&other, &url(port)), &format!("the sentinel 127.0.0.1:{port}"));
    let (_stranger, stranger_port) = server_with_tls(&other);
    let (_sentinel, port) = Sentinel::with_tls(stranger_port, &trusted);
    are_refused(&clients(&trusted, &url(port)), &format!("rediss://127.0.0.1:{stranger_port}"));
}
