// Sums of EACH consecutive rows: out[s] = sum x[s EACH + i] over i < EACH, and out[s] itself where it is added to, one thread for each number of out.

#import "numbers"
#import "elements"

override EACH: u32 = 64;

struct Sizes {
    count: u32,     // numbers of out
    rows: u32,      // of x
    columns: u32,
    add: u32,       // 1: to out
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> x: array<T>;           // (rows, columns)
@group(0) @binding(1) var<storage, read_write> out: array<T>;   // (rows / EACH, rounded up, columns)

fn element(at: u32) {
    let first = at / sizes.columns * EACH;
    let end = min(first + EACH, sizes.rows);
    var sum = ZERO;
    for (var row = first; row < end; row++) {
        sum += x[row * sizes.columns + at % sizes.columns];
    }
    if sizes.add == 1u {
        sum += out[at];
    }
    out[at] = sum;
}
