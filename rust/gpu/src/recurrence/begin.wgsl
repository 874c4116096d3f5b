// The row at which every sequence begins when time runs backwards, its last: out[b] = x[length_b - 1, b]; 0 for a length of 0.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // numbers of out
    n: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;           // (steps, batch, n)
@group(0) @binding(1) var<storage, read> lengths: array<u32>;   // (batch)
@group(0) @binding(2) var<storage, read_write> out: array<T>;   // (batch, n)

fn element(at: u32) {
    let length = lengths[at / sizes.n];
    if length == 0u {
        out[at] = ZERO;
    } else {
        out[at] = x[(length - 1u) * sizes.count + at];
    }
}
