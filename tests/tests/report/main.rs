//! `ombx report` and `--plot`: pages and charts.

mod files;
mod plots;
