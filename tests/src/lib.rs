//! The harness of the suites that run the real executable.
