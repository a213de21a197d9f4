//! Which request may run where, and when.
