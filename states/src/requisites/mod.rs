//! What changes high data once all files are there: `exclude`, `extend`, and requisites that one state gives another.

mod added;
mod exclude;
mod extend;
mod find;

pub(crate) use added::add_to_others;
pub(crate) use exclude::exclude;
pub(crate) use extend::extend;
