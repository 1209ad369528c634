//! Places of ranks.

use serde::{Deserialize, Serialize};

use crate::{codec, cpu_list::parse_cpus};

/// Place of a rank: its host and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Host name.
    pub host: String,
    /// CPUs that the rank may use, as a list of the kernel: `0`, `0-3,8`.
    pub cpus: String,
    /// Number of online CPUs of the host.
    pub online: u32,
    /// Frequency governor of the first of these CPUs; `None` if the kernel has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

impl Place {
    /// Returns the numbers of the CPUs.
    pub fn cpu_numbers(&self) -> Vec<u32> {
        parse_cpus(&self.cpus)
    }

    /// Encodes the place for the gather to rank 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(&(&self.host, &self.cpus, self.online, &self.governor))
    }

    /// Decodes what [`Place::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Place> {
        let (host, cpus, online, governor) = codec::decode(bytes)?;
        Some(Place { host, cpus, online, governor })
    }
}
