//! Certificates for servers on 127.0.0.1, made by `openssl`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{Finish, must, temp_dir};

/// What `openssl` reads before the options of a new key.
const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// An authority of its own, and a certificate for 127.0.0.1 that it signed. Dropping this removes the files.
#[derive(Debug)]
pub struct Certificates(TempDir);

impl Certificates {
    /// Makes new ones, which are valid for a day.
    pub fn new() -> Self {
        let made = Self(temp_dir());
        let directory = made.0.path();
        must("write the name of a server", fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1\n"));
        let authority = ["-x509", "-days", "1", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(directory, &[&["req"][..], &NEW_KEY, &authority].concat());
        let request = ["-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"];
        openssl(directory, &[&["req"][..], &NEW_KEY, &request].concat());
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem"];
        let sign = ["x509", "-req", "-in", "server.csr", "-days", "1", "-extfile", "names"];
        openssl(directory, &[&sign[..], &signed].concat());
        made
    }

    /// The certificate of the authority. Who trusts it trusts the server.
    pub fn authority(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// The certificate of the server, and its key. A client can use them, too.
    pub fn of_server(&self) -> [PathBuf; 2] {
        ["server.pem", "server.key"].map(|file| self.0.path().join(file))
    }

    /// The arguments for a server, which also connects to others with TLS then.
    pub fn arguments(&self, port: u16) -> Vec<String> {
        let file = |name: &str| self.0.path().join(name).display().to_string();
        let words = [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", file("server.pem")),
            ("--tls-key-file", file("server.key")),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-auth-clients", "no".to_owned()),
            ("--tls-replication", "yes".to_owned()),
        ];
        words.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

fn openssl(directory: &Path, words: &[&str]) {
    let done = Command::new("openssl").current_dir(directory).args(words).finish();
    assert!(done.status.success(), "openssl {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}
