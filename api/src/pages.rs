//! An application for browsers, which the operator serves by salt-api.

use std::path::PathBuf;

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
}
