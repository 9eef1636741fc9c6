//! Why a GPU's library or a call of it failed, and what to do then.

use crate::Maker;

/// Why a GPU cannot be used, or which call failed.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum GpuError {
    #[error("{maker} cannot be loaded on this machine: {reason}")]
    NoLibrary { maker: Maker, reason: String },
    #[error("the installed {library} is too old: it has no {function}")]
    NoFunction { library: &'static str, function: &'static str },
    #[error("there is no GPU {gpu}: {maker} finds {count} on this machine")]
    NoSuchGpu { maker: Maker, gpu: String, count: u32 },
    #[error("{function} failed for {object}: {name} ({code})")]
    Call {
        maker: Maker,
        function: &'static str,
        /// The object of the call: a GPU, a number of bytes.
        object: String,
        code: i32,
        /// The library's name for the code.
        name: String,
    },
}

/// Codes that CUresult of cuda.h and hipError_t of hip_runtime_api.h share.
const OUT_OF_MEMORY: i32 = 2;
const NO_DEVICE: i32 = 100;
/// What `hipInit` says on a machine without such a GPU.
const INVALID_DEVICE: i32 = 101;
/// The driver in the kernel and its library are of different versions; only CUDA has it.
const MISMATCH: i32 = 803;

impl GpuError {
    /// Whether the GPU had too little free memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, GpuError::Call { code: OUT_OF_MEMORY, .. })
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            GpuError::NoLibrary { maker: Maker::Cuda, .. } => {
                "install NVIDIA's driver, which brings libcuda.so.1; in a container, run it with `--gpus all`"
            }
            GpuError::NoLibrary { maker: Maker::Rocm, .. } => {
                "install ROCm's runtime (hip-runtime-amd and hsa-rocr), and let LD_LIBRARY_PATH name its lib folder"
            }
            GpuError::NoFunction { .. } => "install a newer one",
            GpuError::NoSuchGpu { .. } => {
                "choose another number (`rocebench doctor` lists the GPUs), or look at CUDA_VISIBLE_DEVICES and \
                 HIP_VISIBLE_DEVICES, which hide GPUs"
            }
            GpuError::Call { code: OUT_OF_MEMORY, .. } => {
                "lower --memory, --qps, --size or the depths, or end what else uses the GPU (`nvidia-smi`, `rocm-smi`)"
            }
            GpuError::Call { code: NO_DEVICE | INVALID_DEVICE, .. } => {
                "look at /dev/nvidia* or /dev/kfd: the driver's nodes are missing, or hidden from this user or container"
            }
            GpuError::Call { code: MISMATCH, .. } => {
                "load the kernel's driver again, or restart: it is of another version than its library"
            }
            GpuError::Call { function, .. } if is_export(function) => NO_EXPORT,
            GpuError::Call { .. } => {
                "look at `dmesg`, and for NVIDIA's GPUs for Xid messages there"
            }
        }
    }
}

const NO_EXPORT: &str = "take --register peermem: no dmabuf of this GPU's memory is to be had. NVIDIA's open kernel modules \
     and a kernel of 5.12 or later export one; ROCm needs CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA";

fn is_export(function: &str) -> bool {
    matches!(function, "cuMemGetHandleForAddressRange" | "hsa_amd_portable_export_dmabuf")
}
