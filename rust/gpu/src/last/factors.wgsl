// e of the last factor E = diag(e): (1, ..., 1, s) of one sign s, given signs as numbers of W, or e^{i theta}.

#import "numbers"
#import "elements"
#import "angle"

struct Sizes {
    count: u32,   // of e
    n: u32,
    form: u32,    // 0: one sign; 1: signs; 2: angles
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> given: array<f32>;       // (batch) of one sign, (batch, n)
@group(0) @binding(1) var<storage, read_write> factors: array<T>; // (batch, n)

fn element(at: u32) {
    if sizes.form == 2u {
        factors[at] = from_parts(direction(given[at]));
    } else if sizes.form == 1u {
        factors[at] = number(given[at]);
    } else {
        let sign = given[at / sizes.n];
        factors[at] = number(select(1.0, sign, at % sizes.n + 1u == sizes.n));
    }
}
