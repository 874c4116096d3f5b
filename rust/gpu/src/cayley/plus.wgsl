// out = W + D, for a batch.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // of all entries
    n: u32,
    last: u32,    // 1: D is not I
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> w: array<T>;         // (batch, n, n)
@group(0) @binding(1) var<storage, read> factors: array<T>;   // (batch, n)
@group(0) @binding(2) var<storage, read_write> out: array<T>; // (batch, n, n)

fn element(at: u32) {
    let n = sizes.n;
    let j = at % n;
    var entry = w[at];
    if at / n % n == j {
        var d = ONE;
        if sizes.last == 1u {
            d = factors[at / (n * n) * n + j];
        }
        entry += d;
    }
    out[at] = entry;
}
