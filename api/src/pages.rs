//! Where the configuration wants salt-api's paths, and the application for browsers that the operator serves by it.

use std::path::PathBuf;

/// Paths that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// What stands before each path; empty or `/…` without a slash at its end.
    pub prefix: String,
    /// The path of hooks, after the prefix.
    pub hook: String,
}

/// Where browsers look for a site's icon.
pub const ICON: &str = "/favicon.ico";

/// The application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppOpts {
    /// Its page.
    pub page: Option<PathBuf>,
    /// The path of the page. It and everything below answer the page.
    pub path: String,
    /// A folder that is served as it is.
    pub folder: Option<PathBuf>,
    /// The path of the folder.
    pub folder_path: String,
    /// The icon at [`ICON`].
    pub icon: Option<PathBuf>,
}
