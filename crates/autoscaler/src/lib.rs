//! The control loop: how many pods, who serves, which activators.
