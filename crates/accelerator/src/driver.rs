//! The functions of a driver, loaded from its library. Those of CUDA's driver interface have counterparts of the same form in HIP.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr,
};

use libloading::Library;
use ombx_core::{
    benchmark::memory::Api,
    error::{Error, Result},
};

/// Address in the memory of a device.
pub(crate) type Address = u64;

/// A driver whose library stays loaded until the process ends.
pub(crate) struct Driver {
    pub(crate) api: Api,
    pub(crate) version: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(crate) device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(crate) device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    pub(crate) device_name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    pub(crate) bus_id: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    pub(crate) attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    pub(crate) can_access_peer: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    pub(crate) total_memory: unsafe extern "C" fn(*mut usize, c_int) -> c_int,
    pub(crate) memory_info: unsafe extern "C" fn(*mut usize, *mut usize) -> c_int,
    pub(crate) allocate: unsafe extern "C" fn(*mut Address, usize) -> c_int,
    pub(crate) allocate_managed: unsafe extern "C" fn(*mut Address, usize, c_uint) -> c_int,
    pub(crate) free: unsafe extern "C" fn(Address) -> c_int,
    pub(crate) to_device: ToDevice,
    pub(crate) to_host: ToHost,
    pub(crate) prefetch: unsafe extern "C" fn(Address, usize, c_int, *mut c_void) -> c_int,
    pub(crate) register: unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int,
    pub(crate) unregister: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) synchronize: unsafe extern "C" fn() -> c_int,
    use_device: UseDevice,
    describe_error: DescribeError,
}

/// Copies bytes to a device, and returns when they are there if the source is pinned.
pub(crate) type ToDevice = unsafe extern "C" fn(Address, *const c_void, usize) -> c_int;
/// Copies bytes from a device, and returns when they are there.
pub(crate) type ToHost = unsafe extern "C" fn(*mut c_void, Address, usize) -> c_int;

/// How a thread chooses its device.
enum UseDevice {
    /// By the primary context of the device.
    Context {
        retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int,
        set: unsafe extern "C" fn(*mut c_void) -> c_int,
    },
    /// By its number.
    Number(unsafe extern "C" fn(c_int) -> c_int),
}

enum DescribeError {
    Stores(unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int),
    Returns(unsafe extern "C" fn(c_int) -> *const c_char),
}

/// Returns the library of a driver, its name for people, and what shows and limits its devices.
pub(crate) const fn library(api: Api) -> [&'static str; 3] {
    match api {
        Api::Cuda => ["libcuda.so.1", "the NVIDIA driver", "nvidia-smi and CUDA_VISIBLE_DEVICES"],
        Api::Rocm => ["libamdhip64.so", "ROCm", "rocm-smi and ROCR_VISIBLE_DEVICES"],
    }
}

impl Driver {
    /// Loads and initialises a driver.
    ///
    /// # Errors
    /// Usage error if the library is missing, lacks a function, or finds no device that it can use.
    pub(crate) fn load(api: Api) -> Result<Driver> {
        let [file, name, devices] = library(api);
        // SAFETY: the initialisers of the driver's library have no preconditions.
        let library = unsafe { Library::new(file) }.map_err(|e| {
            Error::usage(format!(
                "memory of devices needs {name}, but {file} cannot be loaded ({e}): install it, or add its \
                 directory to LD_LIBRARY_PATH"
            ))
        })?;
        // Functions are called until the process ends.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: every symbol has the type that the headers of the driver declare for it: cuda.h of CUDA 12, hip_runtime_api.h of ROCm 6.
        // An address of a device is an integer of 64 bits there or a pointer, which are passed in the same way on 64-bit machines.
        unsafe {
            macro_rules! get {
                ($cuda:literal, $rocm:literal) => {{
                    let symbol = match api {
                        Api::Cuda => $cuda,
                        Api::Rocm => $rocm,
                    };
                    *library.get(symbol.as_bytes()).map_err(|_| {
                        Error::usage(format!(
                            "{file} has no function {symbol}: install a newer version of {name}"
                        ))
                    })?
                }};
            }
            let init: unsafe extern "C" fn(c_uint) -> c_int = get!("cuInit", "hipInit");
            let (use_device, describe_error) = match api {
                Api::Cuda => (
                    UseDevice::Context {
                        retain: get!("cuDevicePrimaryCtxRetain", ""),
                        set: get!("cuCtxSetCurrent", ""),
                    },
                    DescribeError::Stores(get!("cuGetErrorString", "")),
                ),
                Api::Rocm => (
                    UseDevice::Number(get!("", "hipSetDevice")),
                    DescribeError::Returns(get!("", "hipGetErrorString")),
                ),
            };
            let driver = Driver {
                api,
                version: get!("cuDriverGetVersion", "hipDriverGetVersion"),
                device_count: get!("cuDeviceGetCount", "hipGetDeviceCount"),
                device: get!("cuDeviceGet", "hipDeviceGet"),
                device_name: get!("cuDeviceGetName", "hipDeviceGetName"),
                bus_id: get!("cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId"),
                attribute: get!("cuDeviceGetAttribute", "hipDeviceGetAttribute"),
                can_access_peer: get!("cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer"),
                total_memory: get!("cuDeviceTotalMem_v2", "hipDeviceTotalMem"),
                memory_info: get!("cuMemGetInfo_v2", "hipMemGetInfo"),
                allocate: get!("cuMemAlloc_v2", "hipMalloc"),
                allocate_managed: get!("cuMemAllocManaged", "hipMallocManaged"),
                free: get!("cuMemFree_v2", "hipFree"),
                to_device: get!("cuMemcpyHtoD_v2", "hipMemcpyHtoD"),
                to_host: get!("cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
                prefetch: get!("cuMemPrefetchAsync", "hipMemPrefetchAsync"),
                register: get!("cuMemHostRegister_v2", "hipHostRegister"),
                unregister: get!("cuMemHostUnregister", "hipHostUnregister"),
                synchronize: get!("cuCtxSynchronize", "hipDeviceSynchronize"),
                use_device,
                describe_error,
            };
            let code = init(0);
            if code != 0 {
                return Err(Error::usage(format!(
                    "{name} finds no device that it can use ({}): look at {devices}",
                    driver.error(code)
                )));
            }
            Ok(driver)
        }
    }

    /// Returns the description of an error code.
    pub(crate) fn error(&self, code: c_int) -> String {
        let mut text: *const c_char = ptr::null();
        // SAFETY: the driver accepts any code, and stores or returns null or a text that it never frees.
        let text = unsafe {
            match self.describe_error {
                DescribeError::Stores(describe) => {
                    describe(code, &raw mut text);
                }
                DescribeError::Returns(describe) => text = describe(code),
            }
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        match text {
            Some(text) => format!("error {code}, {text}"),
            None => format!("error {code}"),
        }
    }

    /// Returns an error unless a function has succeeded. `what` says what failed.
    pub(crate) fn check(&self, what: &str, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(Error::fabric(format!("{what}: {}", self.error(code)))) }
    }

    /// Returns the context of a device, if the driver has contexts. It exists until the process ends.
    pub(crate) fn context(&self, device: c_int) -> Result<Context> {
        let mut context = ptr::null_mut();
        if let UseDevice::Context { retain, .. } = self.use_device {
            // SAFETY: `device` is a handle of the driver, and `context` outlives the call.
            self.check("the context of the device", unsafe { retain(&raw mut context, device) })?;
        }
        Ok(Context { context, device })
    }

    /// Makes a device that of this thread.
    pub(crate) fn enter(&self, context: Context) -> Result<()> {
        // SAFETY: the context exists until the process ends.
        let code = unsafe {
            match self.use_device {
                UseDevice::Context { set, .. } => set(context.context),
                UseDevice::Number(set) => set(context.device),
            }
        };
        self.check("choosing the device", code)
    }
}

/// What makes a device that of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    context: *mut c_void,
    device: c_int,
}

// SAFETY: a primary context may be used by any thread of the process.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks it.
unsafe impl Sync for Context {}
