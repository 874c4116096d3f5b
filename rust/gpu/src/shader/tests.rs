//! Every variant of every shader is valid, with and without a GPU; they are written to the folder that `ISOMETRY_SHADERS` names, for
//! other compilers (`tests/test_shaders.py`).

use super::{Interface, Shader, Variant};
use crate::Field;
use std::path::PathBuf;
use std::{env, fs};
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};

/// Every shader of the crate.
const SHADERS: &[&Shader] = &[
    &crate::activation::ACTIVATE,
    &crate::activation::ACTIVATE_VJP,
    &crate::cayley::large::BLOCK,
    &crate::cayley::large::CORRECT,
    &crate::cayley::large::MIX,
    &crate::cayley::large::PACK,
    &crate::cayley::large::PANELS,
    &crate::cayley::large::PLUS,
    &crate::cayley::small::SMALL,
    &crate::cayley::small::SMALL_VJP,
    &crate::cayley::large::UNPACK,
    &crate::cell::PREVIOUS,
    &crate::combine::COMBINE,
    &crate::gated::FACTORS,
    &crate::gated::SCALED,
    &crate::gated::UNIT,
    &crate::gated::UNIT_VJP,
    &crate::hadamard::BUTTERFLIES,
    &crate::householder::BALANCE,
    &crate::householder::FINISH,
    &crate::householder::HERMITIAN,
    &crate::householder::inverse::PAIRS,
    &crate::householder::inverse::TRIANGLE,
    &crate::last::FACTORS,
    &crate::last::LAST,
    &crate::last::PULL,
    &crate::lstm::UNIT,
    &crate::lstm::UNIT_VJP,
    &crate::product::PRODUCT,
    &crate::recurrence::steps::APART,
    &crate::recurrence::sequence::BEGIN,
    &crate::recurrence::sequence::START,
    &crate::recurrence::steps::TOGETHER,
    &crate::recurrence::sequence::TRANSPOSE,
    &crate::recurrence::sequence::WITHIN,
    &crate::rows::SUM,
    &crate::rum::FACTORS,
    &crate::rum::MEMORY,
    &crate::rum::MEMORY_VJP,
    &crate::rum::UNIT,
    &crate::rum::UNIT_VJP,
];

fn variants() -> impl Iterator<Item = Variant> {
    SHADERS.iter().flat_map(|shader| {
        [Field::Real, Field::Complex].into_iter().flat_map(move |field| {
            shader.variants.iter().map(move |constants| Variant { shader, field, constants })
        })
    })
}

/// Writes a text to a folder, the constants in the name of its file: product-Real-SIDE=16-EACH=1.wgsl.
fn put(folder: &str, variant: Variant, text: &str) {
    let Variant { shader, field, constants } = variant;
    let constants: String = constants.iter().map(|(key, value)| format!("-{key}={value}")).collect();
    let file = PathBuf::from(folder).join(format!("{}-{field:?}{constants}.wgsl", shader.name));
    fs::write(file, text).unwrap();
}

#[test]
fn every_variant_is_valid() {
    let folder = env::var("ISOMETRY_SHADERS").ok();
    for variant in variants() {
        let name = format!("{} {:?} {:?}", variant.shader.name, variant.field, variant.constants);
        let text = variant.text();
        if let Some(folder) = &folder {
            put(folder, variant, &text);
        }
        let module = wgpu::naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|e| panic!("{name}: {}", e.emit_to_string(&text)));
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES);
        let info = validator.validate(&module).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let constants =
            variant.constants.iter().map(|&(key, value)| (key.to_string(), f64::from(value))).collect();
        let entry = (wgpu::naga::ShaderStage::Compute, "main");
        let (fixed, _) =
            wgpu::naga::back::pipeline_constants::process_overrides(&module, &info, Some(entry), &constants)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        let shared: u32 = fixed
            .global_variables
            .iter()
            .filter(|(_, variable)| variable.space == wgpu::naga::AddressSpace::WorkGroup)
            .map(|(_, variable)| fixed.types[variable.ty].inner.size(fixed.to_ctx()))
            .sum();
        // what every device has
        assert!(shared <= 16384, "{name}: {shared} bytes of workgroup memory");
        let invocations: u32 = fixed.entry_points[0].workgroup_size.iter().product();
        assert!(invocations <= 256, "{name}: {invocations} invocations");
        let interface = Interface::of(&name, &text).unwrap();
        assert!(interface.bindings.len() <= 8 && interface.sizes <= 128, "{name}: {interface:?}");
        assert!(
            interface.bindings.iter().enumerate().all(|(i, binding)| binding.number as usize == i),
            "{name}: {interface:?}"
        );
    }
}

#[test]
fn an_unknown_module_does_not_compile() {
    let text = "#import \"nothing\"\n";
    assert!(Interface::of("broken", text).is_err());
}
