//! Records of small runs, written and read.
