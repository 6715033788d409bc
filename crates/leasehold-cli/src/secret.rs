//! A password that others on this machine can read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who can read a password, and what to do about it. Never the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exposed {
    pub(crate) problem: String,
    pub(crate) remedy: String,
}

impl Exposed {
    /// Of a URL on the command line.
    pub(crate) fn on_the_line(url: &str) -> Option<Self> {
        has_password(url).then(|| Self {
            problem:
                "the password in --url can be read by every user of this machine while the command runs, as with ps"
                    .to_owned(),
            remedy: "pass the URL in LEASEHOLD_URL, or in a leasehold.toml that only you may read".to_owned(),
        })
    }

    /// Of a URL from this file.
    pub(crate) fn in_file(url: &str, file: &Path) -> Option<Self> {
        let is_open = |found: Metadata| found.mode() & 0o044 != 0;
        let is_open = has_password(url) && file.metadata().is_ok_and(is_open);
        is_open.then(|| Self {
            problem: format!("other users of this machine may read {}, which has a password", file.display()),
            remedy: format!("chmod 600 {}", file.display()),
        })
    }
}

/// Whether a URL has a password: between the first `:` after the scheme and an `@`, or in an option.
fn has_password(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let of_server = |server: &str| {
        let user = server.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    };
    of_server(place) || place.split(',').any(of_server) || options.split('&').any(|option| option.contains("password="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_it_stands() {
        for url in [
            "redis://:sesame@h",
            "rediss://app:sesame@h:6379/0?prefix=a",
            "redis+sentinel://a,b/orders?sentinel_password=sesame",
            "redlock://a,:sesame@b",
            "postgres://app:sesame@h,h2/shop?schema=locks",
            "redlock://:sesame@a,b,c?max_ttl=2m",
        ] {
            let told = Exposed::on_the_line(url).unwrap();
            assert!(!format!("{told:?}").contains("sesame"), "{told:?}");
        }
        for url in [
            "redis://h:6379",
            "redis://app@h",
            "sqlite:/a:b@c",
            "postgres://app@h:5432/shop",
            "redis://h/0?prefix=a",
            "redlock://a:1,b:2",
        ] {
            assert_eq!(Exposed::on_the_line(url), None, "{url}");
        }
    }
}
