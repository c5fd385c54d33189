//! What a test cannot run without.

/// Reports that a test cannot run because `what` is missing, and how to get it. The caller then returns.
///
/// # Panics
/// With `CI=true`: there, a test that does nothing must not count as passed.
pub fn missing(what: &str, remedy: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "{what} is missing: {remedy}");
    eprintln!("this test does nothing: {what} is missing: {remedy}");
}

/// Checks whether the test runs as root; if not, reports that it has to.
///
/// # Panics
/// Like [`missing`].
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        missing("the right to act as other users", "run the tests as root");
    }
    root
}
