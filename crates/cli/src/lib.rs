//! The ombx command line.
