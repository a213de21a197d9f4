//! The proxy before the pods: which pod takes this request, or how long does it wait.
