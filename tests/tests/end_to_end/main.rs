//! The real executables, end to end on this machine, in one program: its tests mostly wait, and those of one
//! part wait beside those of another.

mod neighbours;
mod protocols;
mod up;
