// z_bar = phi'(z)^H g of rows, one thread for each pair of features, and the summands Re(conj(e) g) of the gradient of the bias.

#import "numbers"
#import "elements"
#import "activation"
#import "biases"

struct Sizes {
    count: u32,    // pairs of all rows
    n: u32,
    wanted: u32,   // 1: along is written
    phi: RowActivation,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> z: array<T>;               // (rows, n)
@group(0) @binding(1) var<storage, read> ct: array<T>;              // (rows, n)
@group(0) @binding(2) var<storage, read> own: array<f32>;           // biases of modReLU
@group(0) @binding(3) var<storage, read_write> z_bar: array<T>;     // (rows, n)
@group(0) @binding(4) var<storage, read_write> along: array<f32>;   // (rows, biases)

fn element(at: u32) {
    let n = sizes.n;
    let pair = at % pairs(n);
    let row = at / pairs(n);
    let base = row * n;
    let place = places(pair, n, sizes.phi);
    let unit = unit_places(pair, n, sizes.phi);
    let two = place.y < n;
    let b = biases_of(pair, n, sizes.phi);
    var y = Pair(z[base + place.x], ZERO);
    var g = Pair(ct[base + place.x], ZERO);
    if two {
        y.b = z[base + place.y];
        g.b = ct[base + place.y];
    }
    if readable(sizes.phi) {
        y = value(sizes.phi, y, b);
    }
    let out = pull(sizes.phi, y, g, b);
    z_bar[base + place.x] = out.bar.a;
    if two {
        z_bar[base + place.y] = out.bar.b;
    }
    if sizes.wanted == 1u {
        let first = row * units(n, sizes.phi);
        along[first + unit.x] = out.along.x;
        if two && unit.y != unit.x {
            along[first + unit.y] = out.along.y;
        }
    }
}
