//! ebb: everything a person does.
