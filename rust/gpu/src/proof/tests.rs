//! What is changed, on a small shader of the kind that this crate has.

use super::text::{is_barrier, reversed, unwritten, without_barrier};

use crate::device::Record;
use crate::shader::{Shader, Variant};
use crate::testing::device;
use crate::{Array, Field};

const TEXT: &str = "
const SIDE: u32 = 4;
var<workgroup> held: array<f32, SIDE * 2>;   // comment
var<workgroup> counts: array<atomic<u32>, SIDE>;

@compute @workgroup_size(SIDE, 2)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    held[local.x] = 1.0;
    workgroupBarrier();
    if group.x == 0u {
        held[local.y] = 2.0;
    }
    storageBarrier();     // with a reason
}
";

#[test]
fn one_barrier_goes_and_the_others_stay() {
    let barriers = |text: &str| {
        text.lines().filter(|line| is_barrier(line)).map(str::trim).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(barriers(&without_barrier(TEXT, 0)), "storageBarrier();     // with a reason");
    assert_eq!(barriers(&without_barrier(TEXT, 1)), "workgroupBarrier();");
    assert_eq!(without_barrier(TEXT, 2), TEXT);
}

#[test]
fn all_that_a_shader_reads_of_its_place_is_reversed() {
    let text = reversed(&unwritten(TEXT));
    for changed in [
        "let group = groups_given - 1u - group_given;",
        "let local = vec3<u32>(SIDE, 2, 1u) - 1u - local_given;",
        "held[poisoned] = f32(poison);",
        "atomicStore(&counts[poisoned], poison_bits);",
        "poisoned < u32(SIDE * 2); poisoned += u32(SIDE * 2 * 1u)",
    ] {
        assert!(text.contains(changed), "{changed} in {text}");
    }
    wgpu::naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
}

macro_rules! planted {
    ($($name:ident $body:literal $found:ident;)*) => {$(
        static $name: Shader = Shader {
            name: stringify!($name),
            source: concat!(
                "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\nvar<workgroup> held: array<f32, 65>;\n@compute @workgroup_size(64)\nfn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {\n    let at = group.x * 64u + local;\n    ", $body, "\n}\n"
            ),
            variants: &[&[]],
        };
    )*
    /// Shaders, and whether they have races, and uses outside of their arrays.
    const PLANTED: &[(&Shader, [bool; 2])] = &[$((&$name, $found)),*];};
}

const NOTHING: [bool; 2] = [false, false];
const RACES: [bool; 2] = [true, false];
const OUTSIDE: [bool; 2] = [false, true];

planted! {
    OWN "out[at] = 1.0; out[at] += out[at] * 2.0;" NOTHING;
    READ "let x = out[500]; if x > 1.0 { return; }\n out[at] = x;" NOTHING;
    ORDERED "out[at] = 1.0;\n    storageBarrier();\n    out[128u + at] = out[at ^ 1u];" NOTHING;
    ORDERED_AGAIN "let x = out[at ^ 1u];\n    storageBarrier();\n    out[at] = x;" NOTHING;
    WITHOUT "out[at] = 1.0;\n    out[128u + at] = out[at ^ 1u];" RACES;
    WITHOUT_BEFORE "let x = out[at ^ 1u];\n    out[at] = x;" RACES;
    OTHER_BARRIER "let x = out[at ^ 1u];\n    workgroupBarrier();\n    out[at] = x;" RACES;
    TWICE "out[at / 2u] = 1.0;" RACES;
    READ_TWICE "let x = out[at / 2u];\n    out[at / 2u + 64u] = x; if at % 2u == 1u { out[at / 2u] = x; }" RACES;
    OTHERS "out[local] = 1.0;" RACES;
    OTHERS_BEHIND "out[at] = 1.0;\n    storageBarrier();\n    out[128u + at] = out[127u - at];" RACES;
    HELD "held[local] = 1.0;\n    workgroupBarrier();\n    out[at] = held[local ^ 1u];" NOTHING;
    HELD_WITHOUT "held[local] = 1.0;\n    out[at] = held[local ^ 1u];" RACES;
    HELD_OTHER "held[local] = 1.0;\n    storageBarrier();\n    out[at] = held[local ^ 1u];" RACES;
    HELD_AGAIN "held[local] = 1.0;\n    workgroupBarrier();\n    let x = held[63u - local];\n    held[local] = x; out[at] = x;" RACES;
    BEHIND "out[at] = out[at + 384u];" NOTHING;
    BEYOND "out[at] = out[at + 385u];" OUTSIDE;
    HELD_BEYOND "out[at] = held[local + 2u];" OUTSIDE;
    WRITTEN_BEYOND "out[at + 385u] = 1.0;" OUTSIDE;
}

#[test]
fn planted_races_are_found_and_no_others() {
    let Some(context) = device() else { return };
    for &(shader, expected) in PLANTED {
        let out = Array::upload(&context, Field::Real, &[512], &[0.0; 512]).unwrap();
        let found = super::races::counted(|| {
            let mut record = Record::new(&context).unwrap();
            let variant = Variant { shader, field: Field::Real, constants: &[] };
            record.dispatch(variant, &[("out", &out)], &[], [2, 1, 1]).unwrap();
            record.submit().unwrap();
        });
        assert_eq!(found.map(|count| count > 0), expected, "{}: {found:?}", shader.name);
    }
}
