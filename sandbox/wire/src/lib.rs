//! Messages between the minion's broker and an executor, over a socket pair.
