// Before a product Y <- Y + S E that corrects S by its defect E = I - X, X near I:
//
//     Y = (2 S - I) or S,    E = (I - X) weight,    both with D on the right.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,    // of all entries
    n: u32,
    minus: u32,    // 1: Y = 2 S - I, 0: Y = S
    last: u32,     // 1: D is not I
    weight: f32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> s: array<T>;         // (batch, n, n)
@group(0) @binding(1) var<storage, read> factors: array<T>;   // (batch, n)
@group(0) @binding(2) var<storage, read_write> x: array<T>;   // (batch, n, n): X, then E
@group(0) @binding(3) var<storage, read_write> y: array<T>;   // (batch, n, n)

fn element(at: u32) {
    let n = sizes.n;
    let j = at % n;
    let one = number(f32(u32(at / n % n == j)));
    var value = s[at];
    if sizes.minus == 1u {
        value = 2.0 * value - one;
    }
    var defect = sizes.weight * (one - x[at]);
    if sizes.last == 1u {
        let d = factors[at / (n * n) * n + j];
        value = mul(value, d);
        defect = mul(defect, d);
    }
    x[at] = defect;
    y[at] = value;
}
