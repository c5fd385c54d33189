//! salt-minion and salt-call: connect, authenticate, match, run in the sandbox, return.
