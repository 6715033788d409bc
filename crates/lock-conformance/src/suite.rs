//! The tests that are made from the list of cases.

use std::io::{self, Write};
use std::process;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::{Bench, CASES, Case, Facade, Fault, Harness, Need};

/// Makes one test of a [`Harness`] for each case and facade. Call it once, in a module of a test program.
///
/// Besides, `<facade>::account` compares the list of what does not apply with the store, and `child_process` plays the
/// other processes. The macro defines the names `nonblocking`, `blocking` and `child_process`.
///
/// Another variant of a store that runs the whole suite need not repeat all of it: `suite!(MyHarness, nonblocking: store,
/// blocking: none)` says which cases each facade runs: `all`, only those of the `store`, or `none`. The others are ignored tests,
/// which `cargo test -- --include-ignored` runs.
#[macro_export]
macro_rules! suite {
    ($harness:ty) => {
        $crate::suite!($harness, nonblocking: all, blocking: all);
    };
    ($harness:ty, nonblocking: $nonblocking:ident, blocking: $blocking:ident) => {
        $crate::child_process!($harness);
        $crate::__cases!($crate::__tests [$harness, nonblocking, $crate::Facade::Nonblocking, $nonblocking]);
        $crate::__cases!($crate::__tests [$harness, blocking, $crate::Facade::Blocking, $blocking]);
    };
}

/// Makes the test that plays the other processes of a [`Harness`], for programs that do not run the whole suite.
#[macro_export]
macro_rules! child_process {
    ($harness:ty) => {
        /// The path of `child_process`.
        const SUITE_MODULE: &str = module_path!();

        /// Does nothing, unless this process was started to play a part.
        #[test]
        fn child_process() {
            $crate::play_child::<$harness>();
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    (
        [$harness:ty, $module:ident, $facade:expr, $extent:ident]
        $($layer:ident $group:ident { $($name:ident: $($need:expr),+;)* })*
    ) => {
        mod $module {
            use super::*;

            static ABSENT: $crate::Absent = $crate::Absent::new();

            $crate::__test! { $extent store
                fn account() {
                    $crate::account::<$harness>($facade, &ABSENT);
                }
            }

            $(mod $group {
                use super::*;

                $($crate::__test! { $extent $layer
                    fn $name() {
                        let path = concat!(stringify!($group), "::", stringify!($name));
                        $crate::run::<$harness>($facade, $crate::case(path), SUITE_MODULE, &ABSENT);
                    }
                })*
            })*
        }
    };
}

/// Makes a test, which is ignored if its layer is not in the extent.
#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    (all $layer:ident $test:item) => {
        #[test]
        $test
    };
    (store store $test:item) => {
        #[test]
        $test
    };
    ($extent:ident $layer:ident $test:item) => {
        #[test]
        #[ignore = "another variant of the store runs it; `cargo xtask ci --full` runs it here, too"]
        $test
    };
}

/// Runs a case on its own store, unless stores of this harness lack what it needs: [`account`] shows that they do.
///
/// # Panics
/// If the case is not true.
pub fn run<H: Harness>(facade: Facade, case: &Case, module: &'static str, absent: &Absent) {
    let absent = absent.of::<H>(facade);
    if case.needs.iter().any(|need| absent.contains(need)) {
        return;
    }
    let is_restart = |need: &Need| matches!(need, Need::Fault(Fault::RestartWithData | Fault::RestartEmpty));
    let restarts = case.needs.iter().any(is_restart);
    let bench = if restarts { Bench::alone::<H>(facade, module) } else { Bench::new::<H>(facade, module) };
    bounded(case, || (case.check)(&bench));
}

/// No case takes as long on any machine.
const CASE_MAX: Duration = Duration::from_secs(300);

/// Runs a case, and ends the whole process if it does not end in time: a panic does not end the other threads of a case.
fn bounded(case: &Case, check: impl FnOnce()) {
    let ((done, watched), path) = (channel::<()>(), case.path);
    thread::spawn(move || {
        if watched.recv_timeout(CASE_MAX) == Err(RecvTimeoutError::Timeout) {
            // Not by a macro, whose text the test harness keeps to itself.
            writeln!(
                io::stderr(),
                "{path} did not end within {CASE_MAX:?}; the other cases of this program end with it"
            )
            .ok();
            process::exit(101);
        }
    });
    check();
    drop(done);
}

/// Compares what the harness lists as not applicable with what its store can do, shows what the store says to what it cannot
/// do, and prints it.
///
/// # Panics
/// If something is absent and not listed, or listed and not absent, or not refused as it should be.
pub fn account<H: Harness>(facade: Facade, absent: &Absent) {
    let bench = Bench::new::<H>(facade, "");
    let (absent, exempt) = (absent.of::<H>(facade), bench.exempt());
    for need in Need::ALL {
        let listed = exempt.iter().any(|exemption| exemption.need == need);
        assert_eq!(absent.contains(&need), listed, "{need}: present but listed as absent, or absent but not listed");
    }
    absent.iter().for_each(|need| need.check_absence(&bench));
    let mut out = io::stderr().lock();
    writeln!(out, "{}", bench.capabilities()).ok();
    for need in absent {
        let cases: Vec<_> = CASES.iter().filter(|case| case.needs.contains(need)).map(|case| case.path).collect();
        // What is not listed is what its capabilities do not include.
        let reason =
            exempt.iter().find(|exemption| exemption.need == *need).map_or("by its capabilities", |it| it.reason);
        // Not with `print!`, whose text would be shown only on failure.
        writeln!(out, "{facade}: not applicable, for lack of {need} ({reason}): {}", cases.join(", ")).ok();
    }
}

/// The needs of cases that a store does not meet. They are determined once, so that no store is made for a case that does not apply.
#[derive(Debug, Default)]
pub struct Absent(OnceLock<Vec<Need>>);

impl Absent {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn of<H: Harness>(&self, facade: Facade) -> &[Need] {
        self.0.get_or_init(|| {
            let bench = Bench::new::<H>(facade, "");
            let mut needs = Vec::new();
            for need in CASES.iter().flat_map(|case| case.needs) {
                if !needs.contains(need) {
                    needs.push(*need);
                }
            }
            needs.retain(|need| !need.is_met(&bench));
            needs
        })
    }
}
