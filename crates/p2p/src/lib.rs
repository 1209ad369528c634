//! ombx-p2p
