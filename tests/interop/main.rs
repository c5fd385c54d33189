//! Python Salt on the other side: its master with a Brine minion, its minion with a Brine master.

mod python_master;
mod python_minion;
