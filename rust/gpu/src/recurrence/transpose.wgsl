// out = X^T for X n x n.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,
    n: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;

fn element(at: u32) {
    let n = sizes.n;
    out[at] = x[at % n * n + at / n];
}
