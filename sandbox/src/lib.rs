//! The minion's side of the sandbox: modules, policy, limits and the executors that run instances.
