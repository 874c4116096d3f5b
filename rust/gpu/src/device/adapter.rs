//! The adapters of this machine, and which one is used.

use isometry_core::error::{Error, Result};
use std::env;
use wgpu::{Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags};

/// The environment variable that names an adapter: a part of its name, or its number in the list.
pub const CHOICE: &str = "ISOMETRY_GPU_ADAPTER";

/// An adapter as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Its name.
    pub name: String,
    /// "discrete GPU", "integrated GPU", "virtual GPU", "CPU" or "other".
    pub kind: &'static str,
    /// "Vulkan", "Metal" or "DirectX 12".
    pub backend: &'static str,
    /// Driver and version.
    pub driver: String,
    /// Most bytes of an array.
    pub most_bytes: u64,
}

/// All adapters, the ones that are used first in front.
pub fn adapters() -> Vec<Adapter> {
    found().iter().map(described).collect()
}

pub(super) fn instance() -> Instance {
    Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL | Backends::DX12,
        flags: InstanceFlags::empty(),
        ..InstanceDescriptor::new_without_display_handle()
    })
}

fn found() -> Vec<wgpu::Adapter> {
    let instance = instance();
    let mut all = pollster::block_on(instance.enumerate_adapters(Backends::all()));
    all.retain(|adapter| adapter.features().contains(wgpu::Features::IMMEDIATES));
    all.sort_by_key(|adapter| match adapter.get_info().device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    });
    all
}

pub(super) fn described(adapter: &wgpu::Adapter) -> Adapter {
    let info = adapter.get_info();
    let kind = match info.device_type {
        DeviceType::DiscreteGpu => "discrete GPU",
        DeviceType::IntegratedGpu => "integrated GPU",
        DeviceType::VirtualGpu => "virtual GPU",
        DeviceType::Cpu => "CPU",
        DeviceType::Other => "other",
    };
    let backend = match info.backend {
        wgpu::Backend::Vulkan => "Vulkan",
        wgpu::Backend::Metal => "Metal",
        wgpu::Backend::Dx12 => "DirectX 12",
        _ => "another",
    };
    let driver = format!("{} {}", info.driver, info.driver_info).trim().to_string();
    let limits = adapter.limits();
    // shaders index with 32 bits, and the smallest element has four bytes
    let most_bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(u32::MAX.into());
    Adapter { name: info.name, kind, backend, driver, most_bytes }
}

/// The adapter that [`CHOICE`] names; otherwise the first that is not a CPU.
pub(super) fn chosen() -> Result<wgpu::Adapter> {
    let all = found();
    let listed = || match all.iter().map(|adapter| described(adapter).name).collect::<Vec<_>>() {
        names if names.is_empty() => "this machine has none".to_string(),
        names => format!("this machine has {}", names.join(", ")),
    };
    let choice = env::var(CHOICE).unwrap_or_default();
    if choice.is_empty() {
        let place = all.iter().position(|adapter| adapter.get_info().device_type != DeviceType::Cpu);
        let message = || {
            format!(
                "backend=\"gpu\" needs a GPU with a driver for Vulkan, Metal or DirectX 12, and {}; an adapter that runs on \
                 the CPU is used only where {CHOICE} names it",
                listed()
            )
        };
        return place.and_then(|place| all.get(place).cloned()).ok_or_else(|| Error::Unsupported(message()));
    }
    let number = choice.parse::<usize>().ok().filter(|&number| number < all.len());
    let place = number.or_else(|| {
        let wanted = choice.to_lowercase();
        all.iter().position(|adapter| described(adapter).name.to_lowercase().contains(&wanted))
    });
    let message = || format!("{CHOICE} is {choice:?}, and there is no such adapter: {}", listed());
    place.and_then(|place| all.get(place).cloned()).ok_or_else(|| Error::Unsupported(message()))
}
