//! Sockets under throttling: listeners, proxying, pools, probes, timeouts.
