// What the shaders of the rotational unit share, one workgroup for each row: sums over a row, and rows of `frames`.
//
// The rotation of e to tau is H(w) H(a) with a = e / ||e||, v = a + tau / ||tau||, w = v / ||v||. A row of frames has `pitch` numbers:
// PLACES of their own, then a, w and h, and in a backward pass also u, f_u, y and, where states are normalised, h' / ||h'||, n each;
// h is the state before the step, f_u = (h - k) u (1 - u), y the number from which phi' is read.

const LANES: u32 = 64;

// Places of the numbers.
const OVERLAP: u32 = 0;   // w.a
const SLOPE: u32 = 1;     // 1 / ||v||; 0 where the rotation has no gradient
const OF_E: u32 = 2;      // 1 / ||e||
const OF_TAU: u32 = 3;    // 1 / ||tau||
const A_H: u32 = 4;       // a.h
const W_H: u32 = 5;       // w.h
const FACTOR: u32 = 6;    // eta / ||h'||; 0 where h' is
const PLACES: u32 = 8;

// Vectors.
const A: u32 = 0;
const W: u32 = 1;
const H: u32 = 2;
const U: u32 = 3;
const F_U: u32 = 4;
const Y: u32 = 5;
const DIRECTION: u32 = 6;

// Phases.
const WHOLE: u32 = 0;    // a step without a memory
const FIRST: u32 = 1;    // with one: up to the rotation of its rows
const SECOND: u32 = 2;   // and from there on

// The length of the states, where they are normalised.
fn eta() -> f32 {
    return bitcast<f32>(sizes.setting);
}

fn normalised() -> bool {
    return sizes.setting != 0u;
}

fn place_of(vector: u32, here: u32, j: u32) -> u32 {
    return here * sizes.pitch + PLACES + vector * sizes.n + j;
}

var<workgroup> parts: array<vec4<f32>, LANES>;

fn joined(x: vec4<f32>, y: vec4<f32>, largest: bool) -> vec4<f32> {
    return select(x + y, max(x, y), largest);
}

// The sum, or the largest, of what the threads of the workgroup have.
fn over(local: u32, x: vec4<f32>, largest: bool) -> vec4<f32> {
    parts[local] = x;
    workgroupBarrier();
    var found = x;
    if local < LANES / 8u {
        found = parts[local * 8u];
        for (var i = 1u; i < 8u; i++) {
            found = joined(found, parts[local * 8u + i], largest);
        }
    }
    workgroupBarrier();
    if local < LANES / 8u {
        parts[local] = found;
    }
    workgroupBarrier();
    found = parts[0];
    for (var i = 1u; i < LANES / 8u; i++) {
        found = joined(found, parts[i], largest);
    }
    workgroupBarrier();
    return found;
}

fn total(local: u32, x: vec4<f32>) -> vec4<f32> {
    return over(local, x, false);
}

fn most(local: u32, x: vec4<f32>) -> vec4<f32> {
    return over(local, x, true);
}

// The number by which a vector is divided before it is squared, and the inverse length of what is left; below TINY it counts as zero.
struct Scale {
    by: f32,
    inverse: f32,
    zero: bool,
}

fn scale_of(largest: f32, square: f32) -> Scale {
    let length = keep(square, max(root(square), 0.5));
    return Scale(max(largest, TINY), quotient(1.0, length), !is_nan(square) && largest * length < TINY);
}

fn scaled(s: Scale, x: f32) -> f32 {
    return quotient(x, s.by) * s.inverse;
}
