//! The proxy beside each pod: may this request run now, and what is this pod's load.
