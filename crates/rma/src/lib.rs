//! ombx-rma
