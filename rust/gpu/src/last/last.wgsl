// The last factor E = diag(e) of a batch of operators, on rows: out = X E or X conj(E).

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,    // of all numbers of X
    rows: u32,     // of a matrix of the batch
    n: u32,
    conj: u32,     // 1: conj(E)
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;         // (batch, rows, n)
@group(0) @binding(1) var<storage, read> factors: array<T>;   // (batch, n)
@group(0) @binding(2) var<storage, read_write> out: array<T>; // (batch, rows, n)

fn element(at: u32) {
    let own = at / (sizes.rows * sizes.n) * sizes.n + at % sizes.n;
    out[at] = mul(x[at], conj_if(factors[own], sizes.conj == 1u));
}
