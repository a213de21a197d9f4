//! Pods as processes of this machine.
