//! One worker of the stress test, which starts it.

use std::{panic, process};

use stress::part::{Facade, Part};
use stress::{nonblocking, threads};

fn main() {
    // A panic anywhere is a failure of the whole worker, which the test sees.
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        tell(what);
        process::abort();
    }));
    let part = Part::from_command_line();
    match part.facade {
        Facade::Async => nonblocking::play(&part),
        Facade::Blocking => threads::play(&part),
    }
}
