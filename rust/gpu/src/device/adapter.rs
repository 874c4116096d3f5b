//! The adapters of this machine, and which one is used.

use isometry_core::{Error, Result};
use std::env;
use wgpu::{Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags};

/// The environment variable that selects an adapter, by part of its name or its number in the list.
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
    /// Whether calls use it.
    pub used: bool,
}

pub(super) const CPU: &str = "CPU";

/// All adapters, in the order of preference.
pub fn adapters() -> Vec<Adapter> {
    let mut all: Vec<_> = found().iter().map(described).collect();
    if let Ok(place) = place(&all, &env::var(CHOICE).unwrap_or_default()) {
        all[place].used = true;
    }
    all
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
        DeviceType::Cpu => CPU,
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
    Adapter { name: info.name, kind, backend, driver, most_bytes, used: false }
}

/// The adapter that is used.
pub(super) fn chosen() -> Result<wgpu::Adapter> {
    let mut all = found();
    let listed: Vec<_> = all.iter().map(described).collect();
    place(&listed, &env::var(CHOICE).unwrap_or_default()).map(|place| all.swap_remove(place))
}

/// The index of the adapter that a choice names; without one, of the first that is not a CPU.
fn place(all: &[Adapter], choice: &str) -> Result<usize> {
    let listed = || match all.iter().map(|adapter| &*adapter.name).collect::<Vec<_>>() {
        names if names.is_empty() => "this machine has none".to_string(),
        names => format!("this machine has {}", names.join(", ")),
    };
    if choice.is_empty() {
        let message = || {
            format!(
                "backend=\"gpu\" needs a GPU with a driver for Vulkan, Metal or DirectX 12, and {}; an adapter that runs on \
                 the CPU is used only where {CHOICE} names it",
                listed()
            )
        };
        let place = all.iter().position(|adapter| adapter.kind != CPU);
        return place.ok_or_else(|| Error::Unsupported(message()));
    }
    let number = choice.parse::<usize>().ok().filter(|&number| number < all.len());
    let wanted = choice.to_lowercase();
    let named = || all.iter().position(|adapter| adapter.name.to_lowercase().contains(&wanted));
    let message = || format!("{CHOICE} is {choice:?}, and there is no such adapter: {}", listed());
    number.or_else(named).ok_or_else(|| Error::Unsupported(message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Adapter> {
        let one = |name: &str, kind| Adapter {
            name: name.into(),
            kind,
            backend: "Vulkan",
            driver: String::new(),
            most_bytes: 1,
            used: false,
        };
        vec![one("RTX 4090", "discrete GPU"), one("UHD 1", "integrated GPU"), one("llvmpipe", CPU)]
    }

    #[test]
    fn the_first_that_is_no_cpu_or_the_one_named() {
        let all = machine();
        for (choice, expected) in [("", 0), ("1", 1), ("2", 2), ("4090", 0), ("uhd", 1), ("LLVM", 2)] {
            assert_eq!(place(&all, choice), Ok(expected), "{choice}");
        }
        assert_eq!(place(&all[1..], ""), Ok(0));
    }

    #[test]
    fn none_is_an_error_that_lists_what_there_is() {
        let all = machine();
        let text = |all: &[Adapter], choice| match place(all, choice) {
            Err(Error::Unsupported(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(text(&all[2..], "").contains("this machine has llvmpipe; an adapter that runs on the CPU"));
        assert!(text(&[], "").contains("this machine has none"));
        assert!(
            text(&all, "7").contains("\"7\", and there is no such adapter: this machine has RTX 4090, UHD 1")
        );
    }
}
