//! Python's clients on the host of a Brine master: LocalClient, RunnerClient, WheelClient, its commands and salt-api.
