//! Ctrl-C: the first one ends a campaign in order, the second one ends the process.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What shells expect of a process that an interrupt ended.
pub const EXIT_CODE: u8 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on, the first interrupt is only noted.
pub fn listen() {
    // Without a handler an interrupt ends the process at once, which is no reason not to run.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Relaxed) {
            exit(i32::from(EXIT_CODE));
        }
    });
}

/// Whether there was an interrupt.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}
