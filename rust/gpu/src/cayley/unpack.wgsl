// out = I + A, for a batch.

#import "numbers"
#import "elements"
#import "packed"
#import "skew"

struct Sizes {
    count: u32,      // of all entries
    n: u32,
    diagonal: u32,   // 1: A has one
}

var<immediate> sizes: Sizes;

@group(0) @binding(2) var<storage, read_write> out: array<T>; // (batch, n, n)

fn element(at: u32) {
    let n = sizes.n;
    out[at] = skew(at / (n * n), at / n % n, at % n, n, sizes.diagonal == 1u);
}
