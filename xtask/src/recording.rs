//! `cargo xtask recording`: plays the session of the README with the built command, and draws it as a terminal that moves. The picture shows
//! the name of the machine.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::step::{self, root, target};

const PICTURE: &str = "docs/book/src/pictures/session.svg";
/// How long a reader has for what is there before the next line is typed.
const READING: Duration = Duration::from_millis(1500);
/// Where lines are broken, in characters: the listing of locks fits.
const COLUMNS: usize = 84;
/// The width of a line of characters, and the height of one, in pixels.
const LINE: (usize, usize) = (655, 20);
const MARGIN: usize = 16;

const SCRIPT: &str = "#!/bin/sh\necho \"deploying under token $LEASEHOLD_FENCE\"\nexec sleep 60\n";

const STYLE: &str = "text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#1d2939}\
.typed{font-weight:600;fill:#175cd3}rect{fill:#f9fafb;stroke:#d0d5dd}g{animation:shown 10ms both}\
@keyframes shown{from{opacity:0}to{opacity:1}}@media(prefers-reduced-motion:reduce){g{animation:none}}\
@media(prefers-color-scheme:dark){text{fill:#e4e7ec}.typed{fill:#84caff}rect{fill:#161b22;stroke:#344054}}";

/// A line that was typed, and what was printed a while after that.
struct Scene {
    typed: String,
    after: Duration,
    printed: String,
}

/// Plays the session and writes the picture.
pub(crate) fn run() -> Result<()> {
    step::cargo(&["build", "--package", "leasehold-cli"])?;
    let folder = target().join("recording");
    // A lease of an earlier run may not have expired yet.
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let script = folder.join("deploy.sh");
    fs::write(&script, SCRIPT)?;
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
    let scenes = play(&fs::read_to_string(root().join("README.md"))?, &folder)?;
    let picture = root().join(PICTURE);
    fs::create_dir_all(picture.parent().context("the picture has no folder")?)?;
    fs::write(picture, drawn(&scenes))?;
    Ok(())
}

fn play(readme: &str, folder: &Path) -> Result<Vec<Scene>> {
    let (mut scenes, mut background) = (Vec::new(), Vec::new());
    for typed in readme.lines().filter(|line| line.starts_with("$ leasehold ")) {
        let (line, begin) = (typed.trim_start_matches("$ "), Instant::now());
        let mut shell = Command::new("sh");
        shell.current_dir(folder).env_clear().env("PATH", format!("{}/debug:/usr/bin:/bin", target().display()));
        shell.env("XDG_STATE_HOME", folder).stdin(Stdio::null());
        let printed = if let Some(line) = line.strip_suffix(" &") {
            let mut child = shell.args(["-c", &format!("exec {line}")]).stdout(Stdio::piped()).spawn()?;
            let mut first = String::new();
            BufReader::new(child.stdout.as_mut().context("no output")?).read_line(&mut first)?;
            background.push(child);
            first
        } else {
            let output = shell.args(["-c", &format!("{line} 2>&1")]).output()?;
            String::from_utf8(output.stdout)?
        };
        scenes.push(Scene { typed: typed.to_owned(), after: begin.elapsed(), printed });
    }
    for mut child in background {
        child.kill()?;
        child.wait()?;
    }
    ensure!(!scenes.is_empty(), "the README has no session");
    Ok(scenes)
}

fn drawn(scenes: &[Scene]) -> String {
    let (mut lines, mut groups, mut at) = (0, String::new(), Duration::ZERO);
    for scene in scenes {
        groups += &group(&scene.typed, "typed", at, &mut lines);
        at += scene.after;
        groups += &group(&scene.printed, "printed", at, &mut lines);
        at += READING;
    }
    let (width, height) = (LINE.0 + 2 * MARGIN, lines * LINE.1 + 2 * MARGIN);
    let told: Vec<_> = scenes.iter().map(|scene| escaped(&scene.typed)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>A session with leasehold in a terminal</title>\n<desc>{}: the second command is refused, because the first one holds \
         the lock, and the third one lists the holder.</desc>\n<style>{STYLE}</style>\n\
         <rect x=\"1\" y=\"1\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n{groups}</svg>\n",
        told.join(", "),
        width - 2,
        height - 2,
    )
}

/// Lines that appear together, broken where they are too long.
fn group(text: &str, class: &str, at: Duration, lines: &mut usize) -> String {
    let mut group = format!("<g style=\"animation-delay:{}ms\">", at.as_millis());
    for line in text.lines().flat_map(broken) {
        *lines += 1;
        let y = MARGIN + *lines * LINE.1 - 6;
        _ = write!(group, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escaped(&line));
    }
    group + "</g>\n"
}

/// The parts of a line that fit, as a terminal shows them.
fn broken(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_and_appear_in_order() {
        let scene =
            |typed: &str, printed: String| Scene { typed: typed.to_owned(), after: Duration::from_millis(20), printed };
        let picture = drawn(&[scene("$ a &", "b".repeat(COLUMNS + 1)), scene("$ c", "<d>\n".to_owned())]);
        let part = |text: &str| picture.find(&format!(">{text}</text>"));
        let order = ["$ a &amp;", &"b".repeat(COLUMNS), "b", "$ c", "&lt;d&gt;"].map(part);
        assert!(order.is_sorted() && order.iter().all(Option::is_some), "{picture}");
        assert!(picture.contains("animation-delay:1520ms"), "{picture}");
    }
}
