// M + M^H for M the lower triangle of L with half of its diagonal, in place: entry (i, j), i > j, is L_ij, (j, i) its conjugate, and
// (i, i) is Re L_ii. One thread for each entry on or below the diagonal.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,   // batch m m
    m: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read_write> l: array<T>;   // (batch, m, m)

fn element(at: u32) {
    let m = sizes.m;
    let i = at % (m * m) / m;
    let j = at % m;
    if i == j {
        l[at] = number(real(l[at]));
    } else if i > j {
        l[at / (m * m) * m * m + j * m + i] = conj(l[at]);
    }
}
