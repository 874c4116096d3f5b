// What the shaders of cells share: every sequence in its own time k = 0 .. length - 1, and sigma. Real numbers.

struct Sizes {
    count: u32,     // of what the threads or workgroups have
    steps: u32,     // of the longest sequence
    batch: u32,
    n: u32,
    k: u32,         // the step
    reverse: u32,   // 1: k = 0 is the end of a sequence
    varied: u32,    // 1: there are lengths
    setting: u32,   // of the cell
    pitch: u32,     // numbers of a row of the array that has several for each step, where they vary
    phase: u32,
    flag: u32,
    phi: RowActivation,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> lengths: array<u32>;   // (batch)

// The step of sequence b at a row t batch + b within it.
fn step_at(b: u32, t: u32) -> u32 {
    return select(t, steps_of(b) - 1u - t, sizes.reverse == 1u);
}

fn sigma(x: f32) -> f32 {
    let e = exponential(-abs(x));
    return keep(x, quotient(select(e, 1.0, x >= 0.0), 1.0 + e));
}

fn pair_of(a: f32, b: f32) -> Pair {
    return Pair(number(a), number(b));
}
