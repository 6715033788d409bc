//! What either lock does in trouble: the scenes of the tests, as they went in this run.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::scenes::{LONG, SESSION, Stories, Story, WATCHED, cut_off, server_stopped};

/// How long trouble lasts that should end no session.
const SHORT: Duration = Duration::from_secs(2);

/// A scene, and what happens in it.
type Scene = (String, fn() -> Result<Stories>);

/// Plays all scenes, and returns the table.
pub(crate) fn all() -> Result<String> {
    let scenes: [Scene; 3] = [
        (format!("the server is suspended for {LONG:?}"), || server_stopped(LONG)),
        (format!("the network of the holder fails silently for {LONG:?}"), || cut_off(LONG)),
        (format!("the server is suspended for {SHORT:?}"), || server_stopped(SHORT)),
    ];
    // Each has a server of its own, and waits most of the time.
    let played = scenes.map(|(title, play)| (title, thread::spawn(play)));
    let heads = [format!("Sessions of {SESSION:?}, watched for {WATCHED:?}."), String::new()];
    let mut lines: Vec<_> = heads.into_iter().collect();
    lines.extend(["| | leasehold | Curator |".to_owned(), "|---|---|---|".to_owned()]);
    for (title, scene) in played {
        let Ok(stories) = scene.join() else { bail!("a scene has failed: {title}") };
        lines.extend(rows(&title, &stories?));
    }
    Ok(lines.join("\n"))
}

fn rows(title: &str, [ours, theirs]: &Stories) -> [String; 3] {
    let held = |story: &Story| if story.held { "yes" } else { "no" };
    let release = |story: &Story| story.refused.as_ref().map_or("no error".to_owned(), |why| format!("error: {why}"));
    [
        format!("| {title} | {ours} | {theirs} |"),
        format!("| … `check()`, `isAcquiredInThisProcess()`: is it held? | {} | {} |", held(ours), held(theirs)),
        format!("| … what the release says | {} | {} |", release(ours), release(theirs)),
    ]
}
