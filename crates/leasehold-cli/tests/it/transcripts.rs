//! What people see, in front of four kinds of screens. `tests/transcripts` has each session as a text.
//!
//! If a change is meant, run these tests with `LEASEHOLD_BLESS=1` and review the difference.

use crate::support::screen::Screen;
use crate::support::transcript::{on_every_screen, on_every_screen_alike};
use test_support::{RedisOptions, RedisServer};

#[test]
fn first_run() {
    on_every_screen_alike("first-run", |stage| {
        let server = RedisServer::start();
        let lines = [
            "leasehold run nightly -- echo 'one of us at a time'",
            "leasehold ls",
            &format!("export LEASEHOLD_URL={}", server.url()),
            "leasehold run nightly -- sh -c 'echo my token is $LEASEHOLD_FENCE'",
            "leasehold show nightly",
        ];
        stage.plays(&lines).end()
    });
}

#[test]
fn help() {
    on_every_screen_alike("help", |stage| stage.plays(&["leasehold"]).end());
}

#[test]
fn a_wait_with_the_place_in_the_queue_and_then_the_lock() {
    on_every_screen("wait", |stage| {
        let holder = stage.hold("nightly");
        let play = stage.plays(&["leasehold run -w 5m nightly -- echo 'my turn'"]).shows("next in line");
        let play = if stage.screen == Screen::Terminal { play.shows("5m") } else { play };
        let play = play.look();
        holder.release();
        play.end()
    });
}

#[test]
fn busy() {
    on_every_screen_alike("busy", |stage| {
        let _holder = stage.hold("nightly");
        stage.plays(&["leasehold run -n nightly -- echo go", "leasehold run -n -E 0 nightly -- echo go"]).end()
    });
}

#[test]
fn loss() {
    on_every_screen_alike("loss", |stage| {
        let play = stage.plays(&["leasehold run --ttl 9s nightly -- sh -c 'echo working; exec sleep 60'"]);
        let play = play.shows("working");
        stage.revoke("nightly");
        play.end()
    });
}

#[test]
fn ls_and_show() {
    on_every_screen_alike("ls", |stage| {
        let _holders = ["nightly-2", "nightly-10", "deploy"].map(|name| stage.hold(name));
        stage.plays(&["leasehold ls", "leasehold ls 'x*'", "leasehold show deploy", "leasehold show gone"]).end()
    });
}

#[test]
fn ls_that_goes_on() {
    on_every_screen("ls-watch", |stage| {
        let _holder = stage.hold("nightly");
        stage.plays_until_enter("leasehold ls --watch --every 1h").shows("nightly  pid").look().leave()
    });
}

#[test]
fn watch() {
    on_every_screen("watch", |stage| {
        let play = stage.plays_until_enter("leasehold watch --every 200ms").shows("watching");
        let holder = stage.hold("nightly-10");
        let play = play.shows("acquired");
        holder.release();
        play.shows("released").shows("token").look().leave()
    });
}

#[test]
fn break_asks() {
    on_every_screen("break", |stage| {
        let holder = stage.hold("nightly");
        let line = format!("leasehold break nightly --token {}", holder.token);
        let play = stage.plays(&["leasehold break nightly --token 7 --yes", "leasehold break nightly", &line]);
        if stage.screen == Screen::Pipe {
            return play.end();
        }
        play.shows("[y/N] ").types("\n").shows("nothing was changed").shows("[y/N] ").types("y\n").end()
    });
}

#[test]
fn doctor() {
    on_every_screen_alike("doctor", |stage| {
        let server = RedisServer::start();
        stage.plays(&[&format!("leasehold doctor --url {}", server.url())]).end()
    });
}

#[test]
fn mistakes() {
    on_every_screen_alike("mistakes", |stage| {
        std::fs::write(stage.leasehold.scratch.file("broken.toml"), "url = \"redis://db1\"\nttl = \"soon\"\n").unwrap();
        let lines = [
            "leasehold rnu nightly -- ./report.sh",
            "leasehold run",
            "leasehold run -- ./report.sh",
            "leasehold run -n -- make deploy",
            "leasehold run nightly -- ./no-such-report.sh",
            "leasehold run --ttl soon nightly -- ./report.sh",
            "LEASEHOLD_CONFIG=broken.toml leasehold run nightly -- ./report.sh",
        ];
        stage.plays(&lines).end()
    });
}

#[test]
fn stores_that_cannot_be_used() {
    on_every_screen_alike("stores", |stage| {
        let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
        let bare = format!("redis://127.0.0.1:{}", server.port());
        let wrong = format!("redis://:wrong@127.0.0.1:{}", server.port());
        let urls = ["localhost", "localhost:6379", "rediss//db1", "mongo://db1", "redis://127.0.0.1:1", &bare, &wrong];
        let lines = urls.map(|url| format!("leasehold ls --url {url}"));
        stage.plays(&lines.each_ref().map(String::as_str)).end()
    });
}
