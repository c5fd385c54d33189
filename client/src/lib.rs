//! LocalClient and the operators' commands: salt, salt-key, salt-run.
