//! What changes the text of files.
