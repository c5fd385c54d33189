//! Gives back the memory that only the start needed, or work that is over, whenever the daemon is quiet.

use std::time::Duration;

use brine_trim::{Code, Looked, Trim};

/// Time from the start to the first look, and between looks while the daemon is at work.
const SOON: Duration = Duration::from_secs(3);
/// Time between looks while it is quiet.
const EVERY: Duration = Duration::from_secs(30);

/// Gives memory back for as long as it is polled.
pub(crate) async fn run(code: Code) {
    let (mut trim, mut wait) = (Trim::new(code).for_few_pages(), SOON);
    loop {
        tokio::time::sleep(wait).await;
        // It walks over all freed memory, which takes time.
        let looked = tokio::task::spawn_blocking(move || {
            let found = trim.look();
            (trim, found)
        });
        let Ok((back, found)) = looked.await else { return };
        trim = back;
        wait = if found == Looked::Busy { SOON } else { EVERY };
    }
}
