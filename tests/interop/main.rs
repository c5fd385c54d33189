//! Python Salt on the other side: its master with a Brine minion, its minions with a Brine master, its clients on a Brine master's
//! host, its matchers, its modules and its runners beside ours. `BRINE_PYTHON` names the interpreter, so one run meets one release line.

mod batches;
mod outputters;
mod python_clients;
mod python_master;
mod python_minion;
mod runners;
mod standard_modules;
mod targets;
