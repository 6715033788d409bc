//! Plays scenes, tells them, and writes their pictures.

use std::any::Any;
use std::ffi::OsString;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::history::{Ended, History, Variant};
use super::markup::lines;
use super::page::{Played, page};
use super::scene::Scene;
use super::scenes::SCENES;
use super::timeline::draw;
use crate::args::{AllArgs, FailureArgs};
use crate::shared::chart::wrapped;
use crate::shared::failure::{Exit, Failure};
use crate::shared::tell::{self, Teller};

/// Where pictures go unless the user says otherwise.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/lab");
const PAGE: &str = "index.html";

/// Plays the scene of this name.
pub(crate) fn run_one(name: &str, args: &FailureArgs) -> Result<(), Failure> {
    let named = SCENES.into_iter().find(|scene| scene.name == name);
    let scene = named.ok_or_else(|| Failure::new(Exit::Usage, format!("there is no scene {name}; see --help")))?;
    require_redis()?;
    let teller = Teller::new(args.form());
    let folder = folder(args)?;
    let played = play(scene, 1, 1, &teller)?;
    let pictures = write_pictures(&folder, &played)?;
    let where_to = pictures.iter().map(|path| format!("\n  {}", path.display())).collect::<String>();
    teller.end(&format!("The pictures are in:{where_to}"), &played.histories)
}

/// Plays all scenes.
pub(crate) fn run_all(args: &AllArgs) -> Result<(), Failure> {
    require_redis()?;
    let teller = Teller::new(args.failure.form());
    let folder = folder(&args.failure)?;
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for (number, scene) in (1..).zip(SCENES) {
        match play(scene, number, SCENES.len(), &teller) {
            Ok(played) => {
                write_pictures(&folder, &played)?;
                all.push(played);
            }
            Err(failure) => missing.push((scene.name, failure)),
        }
    }
    let path = write(&folder, PAGE, &page(&all))?;
    let histories: Vec<_> = all.iter().flat_map(|played| &played.histories).collect();
    teller.end(&format!("The page with all pictures is {}", path.display()), &histories)?;
    if args.open {
        open(&path);
    }
    not_played(missing)
}

/// Fails if there are scenes that were not played to their end.
fn not_played(missing: Vec<(&str, Failure)>) -> Result<(), Failure> {
    let Some((_, Failure { exit, .. })) = missing.first() else { return Ok(()) };
    let lines: String = missing.iter().map(|(name, failure)| format!("\n  {name}: {}", failure.message)).collect();
    Err(Failure::new(*exit, format!("not played:{lines}")))
}

fn play(scene: &'static Scene, number: usize, of: usize, teller: &Teller) -> Result<Played, Failure> {
    teller.announce(number, of, scene.name);
    teller.tell(&format!("{}{}{:#}\n{}\n", tell::TITLE, scene.title, tell::TITLE, wrapped(scene.what_happens, "")))?;
    let histories = both(scene)?;
    histories.iter().try_for_each(|history| teller.tell(&text(history)))?;
    Ok(Played { scene, histories })
}

/// Plays both variants at the same time: mostly they wait for leases to end.
fn both(scene: &'static Scene) -> Result<[History; 2], Failure> {
    // Its message becomes the error.
    panic::set_hook(Box::new(|_| ()));
    let [without, with] = [Variant::Without, Variant::With].map(|variant| thread::spawn(move || scene.play(variant)));
    let (without, with) = (without.join(), with.join());
    Ok([without.map_err(panicked)??, with.map_err(panicked)??])
}

/// A panic as an error. A server whose program is missing panics when it is started, and the message says what to install.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` has it")]
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let message = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    Failure::new(Exit::Config, message.unwrap_or("a scene panicked"))
}

/// A history as a paragraph.
fn text(history: &History) -> String {
    let style = match history.ended {
        Ended::Violation(_) => tell::WRONG,
        Ended::Prevented(_) => tell::RIGHT,
    };
    let steps: String = lines(history).iter().map(|line| format!("    {line}\n")).collect();
    let end = wrapped(&history.ended.text(), "    ");
    let with = history.variant.word();
    let again: String = history.discarded.iter().map(|why| format!("    played again: {why}\n")).collect();
    format!(
        "  {}{with} the protection{:#} ({})\n{again}{steps}{style}{end}{style:#}\n",
        tell::TITLE,
        tell::TITLE,
        history.lock
    )
}

fn write_pictures(folder: &Path, played: &Played) -> Result<Vec<PathBuf>, Failure> {
    let picture = |history: &History| write(folder, &format!("{}.svg", history.slug()), &draw(history));
    played.histories.iter().map(picture).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let written = fs::write(&path, text).and_then(|()| path.canonicalize());
    written.map_err(|error| Failure::system("cannot write a picture", format!("{}: {error}", path.display())))
}

/// Makes the folder for the pictures.
fn folder(args: &FailureArgs) -> Result<PathBuf, Failure> {
    let folder = args.out.clone().unwrap_or_else(|| FOLDER.into());
    let unusable = |error| {
        let message = format!("cannot make the folder {}: {error}; name another one by --out", folder.display());
        Failure::new(Exit::Usage, message)
    };
    fs::create_dir_all(&folder).map_err(unusable)?;
    Ok(folder)
}

/// Shows a page where there is a browser; its path was printed for everybody else.
fn open(path: &Path) {
    let quiet =
        Command::new("xdg-open").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    // It starts the browser, and ends.
    quiet.and_then(|mut child| child.wait()).ok();
}

/// The scenes start servers of their own.
fn require_redis() -> Result<(), Failure> {
    let program = std::env::var_os("LEASEHOLD_REDIS_SERVER").unwrap_or_else(|| OsString::from("redis-server"));
    let version = Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if version.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let message = format!(
        "cannot start {}; install it with: apt-get install redis-server, or name another in LEASEHOLD_REDIS_SERVER",
        program.display()
    );
    Err(Failure::new(Exit::Config, message))
}
