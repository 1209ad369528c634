//! Memory of accelerators, through the drivers of CUDA and ROCm.
//!
//! A driver is a library that is loaded when a device is used first, so that a program which uses none needs none. Each process uses
//! one device of a driver: the one that the user names, else that of its number on its host, modulo the devices that it sees.
//! `CUDA_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` choose what it sees; an instance of a divided device (MIG) is a device.
//!
//! ```no_run
//! use ombx_accelerator::{Allocation, device};
//! use ombx_core::benchmark::memory::{Api, Place};
//!
//! let mut there = Allocation::new(device(Api::Cuda)?, Place::Device(Api::Cuda), 4096)?;
//! let (message, mut back) = ([7; 4096], [0; 4096]);
//! there.write(&message)?;
//! there.read(&mut back)?;
//! assert_eq!(back, message);
//! # Ok::<(), ombx_core::error::Error>(())
//! ```

mod device;
mod driver;
mod facts;

pub use self::{
    device::{Allocation, Copies, Device, LOCAL_RANKS, Pinned, count, device, select},
    facts::{Described, Link, devices},
};
