//! Panics end an instance by a trap, and standard error leads nowhere: the message goes to the minion's log.
#![cfg(target_family = "wasm")]

use crate::host::log::{Level, write};

// Run before the first exported function of an instance.
#[used]
#[unsafe(link_section = ".init_array")]
static INSTALL: extern "C" fn() = install;

extern "C" fn install() {
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map_or_else(String::new, |location| format!(" at {location}"));
        let message = info.payload_as_str().unwrap_or("no message");
        // One line: the log's last line is in the return that says that the module trapped.
        write(Level::Error, &format!("panicked{at}: {message}").replace('\n', " "));
    }));
}
