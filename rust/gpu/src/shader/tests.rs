//! Every variant of every shader is valid, with and without a GPU; they are written to the folder that `ISOMETRY_SHADERS` names, for
//! other compilers (`tests/test_shaders.py`).

use super::{Interface, Shader, Variant};
use crate::Field;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};
use wgpu::naga::back::{hlsl, msl, spv};
use wgpu::naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use wgpu::naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use wgpu::naga::{BinaryOperator, Expression, MathFunction, Module, ScalarKind};

macro_rules! shaders {
    ($($($module:ident)::+: $($name:ident),*;)*) => {
        /// Every shader of the crate, by module.
        const SHADERS: &[&[&Shader]] = &[$({
            use crate::$($module)::+ as module;
            &[$(&module::$name),*]
        }),*];
    };
}

shaders! {
    activation: ACTIVATE, ACTIVATE_VJP;
    cayley::large: BLOCK, CORRECT, MIX, PACK, PANELS, PLUS, UNPACK;
    cayley::small: SMALL, SMALL_VJP;
    cell: PREVIOUS;
    combine: COMBINE;
    delta: COLLECT, DECAYS, DOTS, GATES, GATES_WIDE, GATHER, LAY,
        MASK, MASK_VJP, PASS, SPREAD, VALUES, WIDE, WIDE_VJP;
    gated: FACTORS, SCALED, UNIT, UNIT_VJP;
    hadamard: BUTTERFLIES;
    householder: BALANCE, FINISH, HERMITIAN;
    householder::inverse: PAIRS, TRIANGLE;
    last: FACTORS, LAST, PULL;
    lstm: UNIT, UNIT_VJP;
    product: PRODUCT;
    recurrence::sequence: BEGIN, START, TRANSPOSE, WITHIN;
    recurrence::steps: APART, TOGETHER;
    rows: SUM;
    rum: FACTORS, MEMORY, MEMORY_VJP, UNIT, UNIT_VJP;
}

fn variants() -> impl Iterator<Item = Variant> {
    SHADERS.iter().copied().flatten().flat_map(|shader| {
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
        assert_eq!(rough(&module, &info), Vec::<String>::new(), "{name}");
        let entry = (wgpu::naga::ShaderStage::Compute, "main");
        let (fixed, _) =
            wgpu::naga::back::pipeline_constants::process_overrides(&module, &info, Some(entry), &constants)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        translated(&fixed).unwrap_or_else(|e| panic!("{name}: {e}"));
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
        let noted = |name: &str| crate::proof::races::OWN.contains(&name);
        let own = interface.bindings.iter().filter(|binding| !noted(&binding.name)).count();
        assert!(own <= 8 && interface.sizes <= 128, "{name}: {interface:?}");
        assert!(
            interface.bindings.iter().enumerate().all(|(i, binding)| binding.number as usize == i),
            "{name}: {interface:?}"
        );
    }
}

/// What WGSL computes roughly, outside of the functions for it.
fn rough(module: &Module, info: &ModuleInfo) -> Vec<String> {
    use MathFunction::{
        Acos, Asin, Atan, Atan2, Cos, Cosh, Distance, Exp, Exp2, InverseSqrt, Length, Log, Log2,
    };
    use MathFunction::{Normalize, Pow, Sin, Sinh, Sqrt, Tan, Tanh};
    let own = ["quotient", "root", "exponential"];
    let listed = [
        Acos,
        Asin,
        Atan,
        Atan2,
        Cos,
        Cosh,
        Distance,
        Exp,
        Exp2,
        InverseSqrt,
        Length,
        Log,
        Log2,
        Normalize,
        Pow,
        Sin,
        Sinh,
        Sqrt,
        Tan,
        Tanh,
    ];
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
    let all = functions.chain([(&module.entry_points[0].function, info.get_entry_point(0))]);
    let mut found = Vec::new();
    for (function, info) in all.filter(|(f, _)| f.name.as_deref().is_none_or(|name| !own.contains(&name))) {
        for (handle, expression) in function.expressions.iter() {
            let float = info[handle].ty.inner_with(&module.types).scalar_kind() == Some(ScalarKind::Float);
            let rough = match expression {
                Expression::Binary { op: BinaryOperator::Divide, .. } => float,
                Expression::Math { fun, .. } => listed.contains(fun),
                _ => false,
            };
            found.extend(rough.then(|| format!("{:?}: {expression:?}", function.name)));
        }
    }
    found
}

/// A shader without constants in the languages of Vulkan, Metal and DirectX 12. wgpu says where arrays and sizes are
/// bound; here nothing does.
fn translated(module: &Module) -> Result<(), String> {
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES);
    let info = validator.validate(module).map_err(|e| format!("{e:?}"))?;
    let checks = BoundsCheckPolicies { index: BoundsCheckPolicy::Restrict, ..BoundsCheckPolicies::default() };
    let options = spv::Options { bounds_check_policies: checks, ..spv::Options::default() };
    let words = spv::write_vec(module, &info, &options, None).map_err(|e| format!("SPIR-V: {e}"))?;
    let options =
        msl::Options { lang_version: (2, 4), fake_missing_bindings: true, ..msl::Options::default() };
    let pipeline = msl::PipelineOptions::default();
    let (metal, _) =
        msl::write_string(module, &info, &options, &pipeline).map_err(|e| format!("MSL: {e}"))?;
    let mut direct = String::new();
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V5_1,
        immediates_target: Some(hlsl::BindTarget::default()),
        ..hlsl::Options::default()
    };
    let pipeline = hlsl::PipelineOptions::default();
    hlsl::Writer::new(&mut direct, &options, &pipeline)
        .write(module, &info, None)
        .map_err(|e| format!("HLSL: {e}"))?;
    accepted_by_spirv_val(&words)?;
    let mains = [metal.contains("kernel void main_("), direct.contains("void main(")];
    if mains == [true; 2] { Ok(()) } else { Err(format!("{mains:?}: a text without main")) }
}

/// What the reference validator says against SPIR-V, where it is installed, but for the `ArrayStride` that naga 30 writes
/// beside arrays of workgroup memory.
fn accepted_by_spirv_val(words: &[u32]) -> Result<(), String> {
    let Ok(found) = Command::new("spirv-val").arg("--version").output() else { return Ok(()) };
    assert!(found.status.success());
    let file = env::temp_dir().join(format!("isometry-{}.spv", std::process::id()));
    fs::write(&file, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let said = Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&file).output().unwrap();
    fs::remove_file(&file).unwrap();
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    if said.status.success() || text.contains("ArrayStride") { Ok(()) } else { Err(text) }
}

#[test]
fn rough_arithmetic_is_found() {
    let text = |body| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
                 fn quotient(y: f32) -> f32 {{ return 1.0 / y; }}
                 @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {{ {body} }}"
        )
    };
    for (body, count) in [
        ("x[0] = quotient(x[g.x / 2u]) * 0.5;", 0),
        ("x[0] = 1.0 / x[1];", 1),
        ("x[0] = (vec2<f32>(x[0]) / x[1]).x;", 1),
        ("x[0] = exp(sin(x[1])) + sqrt(x[2]);", 3),
    ] {
        let module = wgpu::naga::front::wgsl::parse_str(&text(body)).unwrap();
        let info = Validator::new(ValidationFlags::all(), Capabilities::empty()).validate(&module).unwrap();
        assert_eq!(rough(&module, &info).len(), count, "{body}");
    }
}

#[test]
fn an_unknown_module_does_not_compile() {
    let text = "#import \"nothing\"\n";
    assert!(Interface::of("broken", text).is_err());
}
