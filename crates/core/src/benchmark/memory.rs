//! Memory of the buffers of messages: that of the host, or that of an accelerator.

use crate::{
    benchmark::{Case, Heading, Layout, Parameter, ParameterValue as _, Role},
    error::Error,
    unit::digits,
};

/// Interface of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// CUDA, of NVIDIA.
    Cuda,
    /// ROCm (HIP), of AMD.
    Rocm,
}

/// Place of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Memory of the host.
    Host,
    /// Memory of a device.
    Device(Api),
    /// Managed memory, which the driver moves between host and device. It is on the device when iterations begin.
    Managed(Api),
}

impl Place {
    /// Returns the interface of the driver; `None` for memory of the host.
    pub const fn api(self) -> Option<Api> {
        match self {
            Place::Host => None,
            Place::Device(api) | Place::Managed(api) => Some(api),
        }
    }
}

crate::parameter! {
    /// Memory of the buffers of messages, also of sender and receiver apart: SENDER:RECEIVER (one-sided: ORIGIN:TARGET)
    pub enum BufferMemory: "memory", IfChosen, default Host, refined by [&DEVICE] {
        /// Memory of the host
        Host = "host",
        /// Memory of an NVIDIA device (cuMemAlloc)
        Cuda = "cuda",
        /// Managed memory of CUDA (cuMemAllocManaged), prefetched to the device
        CudaManaged = "cuda-managed",
        /// Memory of an AMD device (hipMalloc)
        Rocm = "rocm",
        /// Managed memory of ROCm (hipMallocManaged), prefetched to the device
        RocmManaged = "rocm-managed",
        /// From the host to a device
        HostCuda = "host:cuda",
        /// From a device to the host
        CudaHost = "cuda:host",
        /// From the host to managed memory
        HostCudaManaged = "host:cuda-managed",
        /// From managed memory to the host
        CudaManagedHost = "cuda-managed:host",
        /// From a device to managed memory
        CudaCudaManaged = "cuda:cuda-managed",
        /// From managed memory to a device
        CudaManagedCuda = "cuda-managed:cuda",
        /// From the host to a device
        HostRocm = "host:rocm",
        /// From a device to the host
        RocmHost = "rocm:host",
        /// From the host to managed memory
        HostRocmManaged = "host:rocm-managed",
        /// From managed memory to the host
        RocmManagedHost = "rocm-managed:host",
        /// From a device to managed memory
        RocmRocmManaged = "rocm:rocm-managed",
        /// From managed memory to a device
        RocmManagedRocm = "rocm-managed:rocm",
    }
}

crate::parameter! {
    /// Copy messages through memory of the host inside the timed region, as a program does whose MPI takes no memory of devices
    pub enum Staged: "staged", IfChosen, default Off {
        /// MPI gets the addresses of the buffers
        Off = "off",
        /// MPI gets addresses of the host
        On = "on",
    }
}

/// Parameters of benchmarks whose messages may be in the memory of an accelerator, and be copied through the host.
pub const MEMORY: [&Parameter; 2] = [BufferMemory::PARAMETER, Staged::PARAMETER];

/// The device of every rank.
pub static DEVICE: Parameter = Parameter::free(
    "device",
    "NUMBER",
    "Device of --memory on every host, among those that a rank sees, for example: --device 1 [default: number of the rank on its host, modulo \
     the devices]",
    |text| match digits::<u8>(text) {
        Some(_) => Ok(()),
        None => Err(Error::usage("not a number from 0 to 255")),
    },
)
.under(Heading::General);

impl BufferMemory {
    /// Returns the places of the sender's and of the receiver's buffers.
    pub fn places(self) -> [Place; 2] {
        let (sender, receiver) = self.name().split_once(':').unwrap_or((self.name(), self.name()));
        [sender, receiver].map(|name| match name {
            "cuda" => Place::Device(Api::Cuda),
            "cuda-managed" => Place::Managed(Api::Cuda),
            "rocm" => Place::Device(Api::Rocm),
            "rocm-managed" => Place::Managed(Api::Rocm),
            _ => Place::Host,
        })
    }

    /// Returns the place of the buffers of a rank with this role.
    pub fn place(self, role: Role) -> Place {
        let [sender, receiver] = self.places();
        if role == Role::Passive { receiver } else { sender }
    }

    /// Returns the interfaces of the drivers that the buffers need, at most one.
    pub fn api(self) -> Option<Api> {
        self.places().into_iter().find_map(Place::api)
    }
}

/// Returns why the memory of a case of a benchmark with these roles does not exist, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, layout: Layout) -> Result<(), String> {
    let memory: BufferMemory = case.get();
    let [sender, receiver] = memory.places();
    let name = memory.name();
    if sender != receiver && !layout.has_roles() {
        return Err(format!(
            "--memory {name}: every rank sends and receives in this benchmark; choose one memory, such as --memory {}",
            name.split(':').find(|side| *side != "host").unwrap_or("cuda")
        ));
    }
    match case.get() {
        Staged::Off => Ok(()),
        Staged::On if sender == receiver && sender != Place::Host => Ok(()),
        Staged::On if sender != receiver => {
            Err(format!("--staged copies on both sides: choose one memory instead of --memory {name}"))
        }
        Staged::On => {
            Err("--staged copies from and to a device: add --memory cuda or --memory rocm, or leave it out"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_places() {
        for memory in BufferMemory::ALL {
            let [sender, receiver] = memory.places();
            assert_eq!(sender == receiver, !memory.name().contains(':'), "{memory:?}");
            assert_eq!(memory.api().is_none(), *memory == BufferMemory::Host);
            assert!(!memory.name().contains("cuda") || memory.api() == Some(Api::Cuda));
        }
        assert_eq!(BufferMemory::CudaHost.place(Role::Active), Place::Device(Api::Cuda));
        assert_eq!(BufferMemory::CudaHost.place(Role::Passive), Place::Host);
    }
}
