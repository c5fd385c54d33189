//! Python Salt on the other side: its master with a Brine minion, its minion with a Brine master, its modules beside ours.

mod python_master;
mod python_minion;
mod standard_modules;
