//! ombx-core
