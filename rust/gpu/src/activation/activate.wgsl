// h = phi(z) of rows, one thread for each pair of features.

#import "numbers"
#import "elements"
#import "activation"
#import "biases"

struct Sizes {
    count: u32,   // pairs of all rows
    n: u32,
    phi: RowActivation,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> z: array<T>;         // (rows, n)
@group(0) @binding(1) var<storage, read> own: array<f32>;     // biases of modReLU
@group(0) @binding(2) var<storage, read_write> h: array<T>;   // (rows, n)

fn element(at: u32) {
    let n = sizes.n;
    let pair = at % pairs(n);
    let base = at / pairs(n) * n;
    let place = places(pair, n, sizes.phi);
    let two = place.y < n;
    let b = biases_of(pair, n, sizes.phi);
    var argument = Pair(z[base + place.x], ZERO);
    if two {
        argument.b = z[base + place.y];
    }
    let out = value(sizes.phi, argument, b);
    h[base + place.x] = out.a;
    if two {
        h[base + place.y] = out.b;
    }
}
