//! Memory of the buffers of messages: that of the host, or that of an accelerator.

use ombx_record::{
    error::{Error, Result},
    unit::digits,
};

use crate::benchmark::{Case, Context, Heading, Layout, Named, Parameter, ParameterValue, Role};

pub use crate::benchmark::payload::{CACHE_SIZE, Cache, Copies};

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
    /// Memory of the host that the driver has pinned.
    Pinned(Api),
    /// Memory of a device.
    Device(Api),
    /// Managed memory, which the driver moves between host and device. It is on the device when iterations begin.
    Managed(Api),
    /// Managed memory that is on the host when iterations begin.
    ManagedOnHost(Api),
}

impl Place {
    /// The places by name, as in `--memory`.
    const NAMES: [(&'static str, Place); 9] = [
        ("host", Place::Host),
        ("cuda", Place::Device(Api::Cuda)),
        ("cuda-managed", Place::Managed(Api::Cuda)),
        ("cuda-managed-host", Place::ManagedOnHost(Api::Cuda)),
        ("cuda-pinned", Place::Pinned(Api::Cuda)),
        ("rocm", Place::Device(Api::Rocm)),
        ("rocm-managed", Place::Managed(Api::Rocm)),
        ("rocm-managed-host", Place::ManagedOnHost(Api::Rocm)),
        ("rocm-pinned", Place::Pinned(Api::Rocm)),
    ];

    /// Returns the interface of the driver; `None` for memory of the host.
    pub const fn api(self) -> Option<Api> {
        match self {
            Place::Host => None,
            Place::Pinned(api) | Place::Device(api) | Place::Managed(api) | Place::ManagedOnHost(api) => {
                Some(api)
            }
        }
    }

    /// Returns whether the CPU can access the memory at any time, so that every MPI library takes its address.
    pub const fn is_of_host(self) -> bool {
        matches!(self, Place::Host | Place::Pinned(_))
    }

    /// Returns the name on the command line and in results.
    pub fn name(self) -> &'static str {
        Place::NAMES.iter().find(|(_, place)| *place == self).map_or("host", |(name, _)| name)
    }

    fn from_name(name: &str) -> Result<Place> {
        let found = Place::NAMES.iter().find(|(known, _)| *known == name).map(|(_, place)| *place);
        found.ok_or_else(|| {
            let names: Vec<&str> = Place::NAMES.iter().map(|(name, _)| *name).collect();
            Error::usage(format!(
                "--memory has no value {name}; use {}, or two of them, as in host:cuda",
                names.join(", ")
            ))
        })
    }
}

/// Memory of the buffers of messages of the sender and of the receiver, of origin and target in one-sided operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferMemory {
    sender: Place,
    receiver: Place,
}

impl ParameterValue for BufferMemory {
    const PARAMETER: &'static Parameter = &Parameter::list_of::<BufferMemory>(
        "memory",
        "PLACE[:PLACE]",
        "Memory of the buffers of messages, such as cuda on a GPU or host:cuda; it is host, cuda \
         (cuMemAlloc), cuda-managed (prefetched to the device), cuda-managed-host (to the host), \
         cuda-pinned (host memory that the driver has pinned), and the same with rocm. A colon separates \
         sender and receiver (one-sided: origin and target), and a comma separates values, each with rows \
         of its own: --memory cuda,cuda:host",
    )
    .usually("host")
    .named(Named::IfChosen)
    .refined_by(const { &[&DEVICE] });
    const DEFAULT: BufferMemory = BufferMemory::both(Place::Host);

    fn parse(text: &str) -> Result<BufferMemory> {
        let (sender, receiver) = text.split_once(':').unwrap_or((text, text));
        let memory =
            BufferMemory { sender: Place::from_name(sender)?, receiver: Place::from_name(receiver)? };
        match (memory.sender.api(), memory.receiver.api()) {
            (Some(of_sender), Some(of_receiver)) if of_sender != of_receiver => {
                Err(Error::usage(format!("--memory {text}: both places are of CUDA, or both of ROCm")))
            }
            _ => Ok(memory),
        }
    }

    fn text(&self) -> String {
        let [sender, receiver] = self.places().map(Place::name);
        if sender == receiver { sender.to_owned() } else { format!("{sender}:{receiver}") }
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
    "Device of --memory on every host, among those that a rank sees, for example: --device 1 [default: \
     number of the rank on its host, modulo the devices]",
    |text| match digits::<u8>(text) {
        Some(_) => Ok(()),
        None => Err(Error::usage("not a number from 0 to 255")),
    },
)
.under(Heading::General);

impl BufferMemory {
    /// Returns the same memory for both sides.
    pub const fn both(place: Place) -> BufferMemory {
        BufferMemory { sender: place, receiver: place }
    }

    /// Returns the memory of two sides, whose places need the same driver.
    pub const fn of_sides(sender: Place, receiver: Place) -> BufferMemory {
        BufferMemory { sender, receiver }
    }

    /// Returns whether both sides have memory of the host.
    pub fn is_host(self) -> bool {
        self == BufferMemory::DEFAULT
    }

    /// Returns the places of the sender's and of the receiver's buffers.
    pub const fn places(self) -> [Place; 2] {
        [self.sender, self.receiver]
    }

    /// Returns the place of the buffers of a rank with this role.
    pub fn place(self, role: Role) -> Place {
        if role == Role::Passive { self.receiver } else { self.sender }
    }

    /// Returns the interface of the driver that the buffers need.
    pub fn api(self) -> Option<Api> {
        self.sender.api().or(self.receiver.api())
    }
}

/// Returns why the memory of a case of a benchmark with these roles does not exist, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, layout: Layout) -> std::result::Result<(), String> {
    let memory: BufferMemory = case.get();
    let [sender, receiver] = memory.places();
    let name = memory.text();
    if sender != receiver && !layout.has_roles() {
        let one = if sender == Place::Host { receiver } else { sender };
        return Err(format!(
            "--memory {name}: every rank sends and receives in this benchmark; choose one memory, such as --memory {}",
            one.name()
        ));
    }
    match case.get() {
        Staged::Off => Ok(()),
        Staged::On if sender != receiver => {
            Err(format!("--staged copies on both sides: choose one memory instead of --memory {name}"))
        }
        Staged::On if sender.is_of_host() => {
            Err("--staged copies from and to a device: add --memory cuda or --memory rocm, or leave it out"
                .to_owned())
        }
        Staged::On => Ok(()),
    }
}

/// Returns the error of a kernel whose buffers have no copies, if the row asks for them.
///
/// # Errors
/// [`Error::unsupported`] if the row has [`Cache::Cold`].
pub fn only_warm(cx: &Context<'_>, why: &str) -> Result<()> {
    match cx.get() {
        Cache::Warm => Ok(()),
        Cache::Cold => Err(Error::unsupported(format!("--cache cold is not supported by {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed_apart() {
        for (text, same) in
            [("host", "host"), ("cuda:cuda", "cuda"), ("host:rocm-managed", "host:rocm-managed")]
        {
            assert_eq!(BufferMemory::parse(text).unwrap().text(), same);
        }
        let memory = BufferMemory::parse("cuda:cuda-managed-host").unwrap();
        assert_eq!(memory.place(Role::Active), Place::Device(Api::Cuda));
        assert_eq!(memory.place(Role::Passive), Place::ManagedOnHost(Api::Cuda));
        assert_eq!((memory.api(), BufferMemory::DEFAULT.api()), (Some(Api::Cuda), None));
        for (text, why) in [("cuda:rocm", "both places"), ("gpu", "use host, cuda"), ("cuda:", "no value ;")]
        {
            let refusal = BufferMemory::parse(text).unwrap_err().to_string();
            assert!(refusal.contains(why), "{refusal}");
        }
        for (name, place) in Place::NAMES {
            assert_eq!(place.name(), name);
            assert_eq!(place.api().is_none(), name == "host");
        }
    }
}
