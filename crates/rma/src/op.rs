//! One-sided operations, one file each. A new operation needs only its `mod` line here.

pub mod accumulate;
pub mod compare_and_swap;
pub mod fetch_and_op;
pub mod get;
pub mod get_accumulate;
pub mod put;
pub mod request;

use ombx_core::{
    benchmark::{
        payload::{Check, Fill},
        reduction::Elements,
    },
    error::Result,
};
use ombx_mpi::Epoch;

use crate::{memory::Memory, operation::Operation};
