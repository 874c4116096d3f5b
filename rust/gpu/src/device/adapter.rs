//! The adapters of this machine, and which one is used.

use isometry_core::{Error, Result};
use std::env;
use wgpu::{Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags, Limits};

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
    /// The limit that is too low for the shaders.
    lacks: Option<String>,
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
    let limits = limits(adapter);
    // shaders index with 32 bits, and the smallest element has four bytes
    let most_bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(u32::MAX.into());
    Adapter { name: info.name, kind, backend, driver, most_bytes, used: false, lacks: lacks(&limits) }
}

/// What a device of an adapter is opened with: all that it has.
pub(super) fn limits(adapter: &wgpu::Adapter) -> Limits {
    #[cfg(any(test, feature = "proof"))]
    return crate::proof::limits(adapter.limits());
    #[cfg(not(any(test, feature = "proof")))]
    adapter.limits()
}

/// The first limit below what the shaders need: the least that WebGPU allows, and 128 bytes of immediates.
fn lacks(limits: &Limits) -> Option<String> {
    let needed = [
        (limits.max_storage_buffers_per_shader_stage, 8, "storage buffers of a shader"),
        (limits.max_compute_workgroup_storage_size, 16384, "bytes of workgroup memory"),
        (limits.max_compute_invocations_per_workgroup, 256, "threads of a workgroup"),
        (limits.max_immediate_size, 128, "bytes of immediates"),
    ];
    let low = needed.into_iter().find(|(found, least, _)| found < least);
    low.map(|(found, least, what)| format!("has {found} {what}, and the shaders need {least}"))
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
        let place = |able: fn(&Adapter) -> bool| all.iter().position(|a| a.kind != CPU && able(a));
        let place = place(|a| a.lacks.is_none()).or_else(|| place(|_| true));
        return able(all, place.ok_or_else(|| Error::Unsupported(message()))?);
    }
    let number = choice.parse::<usize>().ok().filter(|&number| number < all.len());
    let wanted = choice.to_lowercase();
    let named = || all.iter().position(|adapter| adapter.name.to_lowercase().contains(&wanted));
    let message = || format!("{CHOICE} is {choice:?}, and there is no such adapter: {}", listed());
    able(all, number.or_else(named).ok_or_else(|| Error::Unsupported(message()))?)
}

/// Refuses an adapter that cannot run the shaders.
fn able(all: &[Adapter], place: usize) -> Result<usize> {
    let refused = |lacks: &String| Error::Unsupported(format!("{} {lacks}: use the CPU", all[place].name));
    all[place].lacks.as_ref().map_or(Ok(place), |lacks| Err(refused(lacks)))
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
            lacks: None,
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
    fn an_adapter_below_the_limits_of_webgpu_is_refused_by_name() {
        let enough = Limits { max_immediate_size: 128, ..Limits::default() };
        assert_eq!(lacks(&enough), None);
        let low = [
            Limits { max_storage_buffers_per_shader_stage: 7, ..enough.clone() },
            Limits { max_compute_workgroup_storage_size: 16383, ..enough.clone() },
            Limits { max_compute_invocations_per_workgroup: 255, ..enough.clone() },
            Limits { max_immediate_size: 127, ..enough },
        ];
        for limits in low {
            let mut all = machine();
            all[0].lacks = lacks(&limits);
            assert_eq!(place(&all, ""), Ok(1), "another serves");
            let Err(Error::Unsupported(text)) = place(&all, "4090") else { panic!("{limits:?}") };
            assert!(text.starts_with("RTX 4090 has ") && text.contains("the shaders need"), "{text}");
            let alone = place(&all[..1], "");
            assert!(matches!(alone, Err(Error::Unsupported(text)) if text.starts_with("RTX 4090 has ")));
        }
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
