// A copy of the rows of sequences, 0 past their ends, whatever stands there: out[t, b] = x[t, b] for t < length_b.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,    // numbers of x
    batch: u32,
    n: u32,
    varied: u32,   // 1: there are lengths
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;           // (steps, batch, n)
@group(0) @binding(1) var<storage, read> lengths: array<u32>;   // (batch)
@group(0) @binding(2) var<storage, read_write> out: array<T>;   // (steps, batch, n)

fn element(at: u32) {
    let row = at / sizes.n;
    if sizes.varied == 1u && row / sizes.batch >= lengths[row % sizes.batch] {
        out[at] = ZERO;
    } else {
        out[at] = x[at];
    }
}
