//! What files were before they were changed.
