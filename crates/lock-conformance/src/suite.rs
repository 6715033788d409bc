//! The tests that are made from the list of cases.

use std::io::{self, Write};

use crate::{Bench, CASES, Case, Facade, Harness, Need};

/// Makes one test of a [`Harness`] for each case and facade. Call it once, in a module of a test program.
///
/// Besides, `<facade>::account` compares the list of what does not apply with the store, and `child_process` plays the
/// other processes. The macro defines the names `nonblocking`, `blocking` and `child_process`.
#[macro_export]
macro_rules! suite {
    ($harness:ty) => {
        $crate::child_process!($harness);
        $crate::__cases!($crate::__tests [$harness, nonblocking, $crate::Facade::Nonblocking]);
        $crate::__cases!($crate::__tests [$harness, blocking, $crate::Facade::Blocking]);
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
    ([$harness:ty, $module:ident, $facade:expr] $($group:ident { $($name:ident: $need:expr;)* })*) => {
        mod $module {
            use super::*;

            #[test]
            fn account() {
                $crate::account::<$harness>($facade);
            }

            $(mod $group {
                use super::*;

                $(#[test]
                fn $name() {
                    let path = concat!(stringify!($group), "::", stringify!($name));
                    $crate::run::<$harness>($facade, $crate::case(path), SUITE_MODULE);
                })*
            })*
        }
    };
}

/// Runs a case on its own store, or, if the store lacks what the case needs, shows that it does.
///
/// # Panics
/// If the case is not true, or if something is absent without being listed.
pub fn run<H: Harness>(facade: Facade, case: &Case, module: &'static str) {
    let bench = Bench::new::<H>(facade, module);
    if case.need.is_met(&bench) {
        return (case.check)(&bench);
    }
    if let Need::Ability(_) | Need::Mode(_) = case.need {
        // The store's capabilities say that it cannot, and no station asks for it.
        return case.need.check_absence(&bench);
    }
    let listed = bench.exempt().iter().any(|exemption| exemption.need == case.need);
    assert!(listed, "{} needs {}; list it in the harness, with the reason why it is absent", case.path, case.need);
    case.need.check_absence(&bench);
}

/// Compares what the harness lists as not applicable with what its store can do, and prints it.
///
/// # Panics
/// If something is absent and not listed, or listed and not absent.
pub fn account<H: Harness>(facade: Facade) {
    let bench = Bench::new::<H>(facade, "");
    let exempt = bench.exempt();
    for need in Need::ALL {
        let listed = exempt.iter().any(|exemption| exemption.need == need);
        assert_ne!(need.is_met(&bench), listed, "{need}: present but listed as absent, or absent but not listed");
    }
    let mut out = io::stderr().lock();
    writeln!(out, "{}", bench.capabilities()).ok();
    for exemption in exempt {
        let cases: Vec<_> = CASES.iter().filter(|case| case.need == exemption.need).map(|case| case.path).collect();
        let (absent, reason) = (exemption.need, exemption.reason);
        // Not with `print!`, whose text would be shown only on failure.
        writeln!(out, "{facade}: not applicable, for lack of {absent} ({reason}): {}", cases.join(", ")).ok();
    }
}
