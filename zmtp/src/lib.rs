//! ZMTP 3.1, ZeroMQ's wire, over tokio for hostile networks.
