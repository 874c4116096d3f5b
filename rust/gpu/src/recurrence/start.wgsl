// Added to the row at which every sequence begins when time runs backwards, its last: x[length_b - 1, b] += first[b] for lengths above 0.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // numbers of first
    n: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> first: array<T>;       // (batch, n)
@group(0) @binding(1) var<storage, read> lengths: array<u32>;   // (batch)
@group(0) @binding(2) var<storage, read_write> x: array<T>;     // (steps, batch, n)

fn element(at: u32) {
    let length = lengths[at / sizes.n];
    if length > 0u {
        x[(length - 1u) * sizes.count + at] += first[at];
    }
}
