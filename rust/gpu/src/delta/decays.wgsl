// The gates of a chunk as products over its tokens, from sums of their logarithms: one thread for each number of a gate.

#import "numbers"
#import "elements"
#import "delta"

@group(0) @binding(1) var<storage, read> g: array<f32>;               // (B, T, HV, width)
@group(0) @binding(2) var<storage, read_write> decays: array<f32>;    // (3, task, tokens, width)

// e^-1000 is 0, and sums of -1000 are finite.
fn logarithm(task: u32, t: u32, d: u32) -> f32 {
    if !lives(task, t) {
        return 0.0;
    }
    let x = g[of_head(task, t) * sizes.width + d];
    return keep(x, max(x, -1000.0));
}

fn element(at: u32) {
    let task = at / sizes.width;
    let d = at % sizes.width;
    var sum = 0.0;
    for (var t = 0u; t < sizes.tokens; t++) {
        let own = logarithm(task, t, d);
        sum += own;
        decays[place_of_decay(OWN, task, t, d)] = exponential(own);
        decays[place_of_decay(BEFORE, task, t, d)] = exponential(sum);
    }
    sum = 0.0;
    for (var back = 0u; back < sizes.tokens; back++) {
        let t = sizes.tokens - 1u - back;
        decays[place_of_decay(AFTER, task, t, d)] = exponential(sum);
        sum += logarithm(task, t, d);
    }
}
