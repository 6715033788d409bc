//! The directory of a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::options::{DATABASE, MysqlOptions, Product, sql_for_database};
use super::programs::{account, installing, server};
use crate::template::{self, copy_tree, done};
use crate::{Finish, must, temp_dir};

/// The data, in the directory of a server.
const DATA: &str = "data";
/// What a new server runs before the first client can connect.
const FIRST: &str = "first.sql";
/// The certificate, the key, and the certificate of the authority.
const TLS: [&str; 3] = ["server.pem", "server.key", "ca.pem"];

/// Makes the directory of a server that has no data yet.
pub(super) fn new(options: &MysqlOptions) -> TempDir {
    let directory = temp_dir();
    copy_tree(&template(options), &data_in(&directory));
    let sql = options.sql_for_user() + &sql_for_database(DATABASE);
    must("write what a new server runs", fs::write(directory.path().join(FIRST), sql));
    if let Some(tls) = &options.tls {
        for (file, text) in TLS.iter().zip([&tls.certificate, &tls.key, &tls.authority]) {
            must("write a certificate", fs::write(directory.path().join(file), text));
        }
    }
    account().own(&data_in(&directory));
    account().own(directory.path());
    directory
}

/// The arguments that tell a server where its files are.
pub(super) fn arguments(directory: &TempDir, options: &MysqlOptions) -> Vec<String> {
    let file = |name: &str| directory.path().join(name);
    let mut files = vec![("datadir", data_in(directory)), ("socket", socket_in(directory)), ("pid-file", file("pid"))];
    // A server that starts removes the temporary tables of all that share the directory for them.
    files.push(("tmpdir", directory.path().to_owned()));
    if file(FIRST).exists() {
        files.push(("init-file", file(FIRST)));
    }
    if options.tls.is_some() {
        files.extend(["ssl-cert", "ssl-key", "ssl-ca"].into_iter().zip(TLS.map(file)));
    }
    files.into_iter().map(|(name, file)| format!("--{name}={}", file.display())).collect()
}

fn data_in(directory: &TempDir) -> PathBuf {
    directory.path().join(DATA)
}

/// The socket of a server, for those who may enter its directory.
pub(super) fn socket_in(directory: &TempDir) -> PathBuf {
    directory.path().join("socket")
}

/// Notes that the server ran what it is to run first.
pub(super) fn ran_first(directory: &TempDir) {
    fs::remove_file(directory.path().join(FIRST)).ok();
}

/// New data, made once for each version of the server.
fn template(options: &MysqlOptions) -> PathBuf {
    let settings = options.of_new_data();
    let what = format!("{:?} {} {}", Product::tested(), version(), settings.join(" "));
    template::of_version(&what, |place| make_template(place, &settings))
}

fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let version = server(Product::tested()).arg("--version").finish();
        done("--version of the server", &version);
        let text = String::from_utf8_lossy(&version.stdout);
        // What comes first is where the program is.
        text.split_once("Ver ").map_or(&*text, |(_, version)| version).to_owned()
    })
}

fn make_template(place: &Path, settings: &[&str]) {
    let directory = temp_dir();
    let data = data_in(&directory);
    must("make a directory of the data", fs::create_dir(&data));
    account().own(directory.path());
    let mut install = installing(Product::tested());
    install.arg(format!("--datadir={}", data.display())).arg(format!("--tmpdir={}", directory.path().display()));
    install.current_dir(directory.path());
    done("making new data", &install.args(Product::tested().innodb()).args(settings).finish());
    copy_tree(&data, place);
}
