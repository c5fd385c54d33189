//! Salt's protocol: values, envelopes, keys, jobs, targets, events and configuration files.
