//! Python Salt's matchers and ours, asked the same.
