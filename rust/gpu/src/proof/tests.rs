//! What is changed, on a small shader of the kind that this crate has.

use super::text::{is_barrier, reversed, unwritten, without_barrier};

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
