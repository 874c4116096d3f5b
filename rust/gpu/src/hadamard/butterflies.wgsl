// Some levels of butterflies, (a, b) -> (a + b, a - b) of numbers `stride` apart, then twice as far, and so on: workgroups take whole sets of
// 2^levels numbers, `stride` apart from each other, as many as their memory holds.

#import "numbers"
#import "workgroups"

const MOST: u32 = 1024;   // numbers of a workgroup
const LANES: u32 = 256;

struct Sizes {
    count: u32,    // of all numbers
    stride: u32,
    levels: u32,
    scale: f32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;

var<workgroup> held: array<T, MOST>;

// The place of number `e` of a workgroup.
fn place(number: u32, e: u32) -> u32 {
    let which_set = ((number * MOST) >> sizes.levels) + (e >> sizes.levels);
    let j = e & ((1u << sizes.levels) - 1u);
    let first = ((which_set / sizes.stride * sizes.stride) << sizes.levels) + which_set % sizes.stride;
    return first + j * sizes.stride;
}

fn work(which: u32, local: u32) {
    for (var e = local; e < MOST; e += LANES) {
        let at = place(which, e);
        held[e] = ZERO;
        if which * MOST + e < sizes.count {
            held[e] = x[at];
        }
    }
    workgroupBarrier();
    for (var level = 0u; level < sizes.levels; level++) {
        for (var i = local; i < MOST / 2u; i += LANES) {
            let a = ((i >> level) << (level + 1u)) + (i & ((1u << level) - 1u));
            let b = a + (1u << level);
            let sum = held[a] + held[b];
            held[b] = held[a] - held[b];
            held[a] = sum;
        }
        workgroupBarrier();
    }
    for (var e = local; e < MOST; e += LANES) {
        if which * MOST + e < sizes.count {
            out[place(which, e)] = sizes.scale * held[e];
        }
    }
}
