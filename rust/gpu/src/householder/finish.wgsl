// The gradient of the given vectors from that of the balanced ones: columns times their scales.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // batch n m
    n: u32,
    m: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> scales: array<f32>;      // (batch, m)
@group(0) @binding(1) var<storage, read_write> bar: array<T>;     // (batch, n, m)

fn element(at: u32) {
    bar[at] = scales[at / (sizes.n * sizes.m) * sizes.m + at % sizes.m] * bar[at];
}
