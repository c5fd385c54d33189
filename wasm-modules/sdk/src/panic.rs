//! A panic ends an instance with a trap, and standard error is not visible, so the message goes to the minion's log.
#![cfg(target_family = "wasm")]

use crate::host::log::{Level, write};

// This runs before the first exported function of an instance.
#[used]
#[unsafe(link_section = ".init_array")]
static INSTALL: extern "C" fn() = install;

extern "C" fn install() {
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map_or_else(String::new, |location| format!(" at {location}"));
        let message = info.payload_as_str().unwrap_or("no message");
        // The message is one line, because the return of a trapped module quotes the log's last line.
        write(Level::Error, &format!("panicked{at}: {message}").replace('\n', " "));
    }));
}
