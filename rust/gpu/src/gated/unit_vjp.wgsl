// A step of a gated unit backward, from the cotangent g of its state, for a pair of features of a sequence; primes are cotangents of
// the arguments of sigma and phi:
//
//   c' = phi'(y)^H ((1 - z) g),   z' = f_z g,   r' = f_r c' (reset after) or f_r s (before), s = W_h^T c',
//   g <- z g, or z g + r s (before),
//
// to which the caller adds the products of (z', r', r c') or (z', r') with W. Reset before: phase 1 begins with s.

#import "numbers"
#import "elements"
#import "activation"
#import "biases"
#import "cell"
#import "gated"

const GATES: u32 = 0;

@group(0) @binding(1) var<storage, read> own: array<f32>;            // biases of modReLU
@group(0) @binding(2) var<storage, read> ct: array<f32>;             // (steps, batch, n); in phase 1 s, (batch, n)
@group(0) @binding(3) var<storage, read> factors: array<f32>;        // (steps, batch, 5, n)
@group(0) @binding(4) var<storage, read_write> g: array<f32>;        // (batch, n)
@group(0) @binding(5) var<storage, read_write> bars: array<f32>;     // z', r', c', (steps, batch, 3, n)
@group(0) @binding(6) var<storage, read_write> now: array<f32>;      // z', r', and r c' or c', of this step, (batch, 3, n)
@group(0) @binding(7) var<storage, read_write> along: array<f32>;    // summands of the gradient of phi's bias, (steps, batch, biases)

fn factor(which: u32, here: u32, j: u32) -> f32 {
    return factors[(here * 5u + which) * sizes.n + j];
}

fn put(gate: u32, here: u32, b: u32, j: u32, x: f32, of_now: f32) {
    bars[(here * 3u + gate) * sizes.n + j] = x;
    now[(b * 3u + gate) * sizes.n + j] = of_now;
}

fn finish(here: u32, b: u32, j: u32, whole: f32, bar: T) {
    let c = real(bar);
    let z = factor(1u, here, j) * whole;
    put(0u, here, b, j, z, z);
    if after() {
        let r = factor(3u, here, j) * c;
        put(1u, here, b, j, r, r);
        put(2u, here, b, j, c, factor(2u, here, j) * c);
    } else {
        put(2u, here, b, j, c, c);
    }
    g[b * sizes.n + j] = factor(0u, here, j) * whole;
}

fn second(here: u32, b: u32, j: u32) {
    let s = ct[b * sizes.n + j];
    let r = factor(3u, here, j) * s;
    put(1u, here, b, j, r, r);
    g[b * sizes.n + j] += factor(2u, here, j) * s;
}

fn clear(here: u32, b: u32, j: u32) {
    for (var gate = 0u; gate < 3u; gate++) {
        put(gate, here, b, j, 0.0, 0.0);
    }
}

fn element(at: u32) {
    let n = sizes.n;
    let b = at / pairs(n);
    let pair = at % pairs(n);
    let phi = sizes.phi;
    let place = places(pair, n, phi);
    let unit = unit_places(pair, n, phi);
    let two = place.y < n;
    let here = row(b, sizes.k);
    let live = sizes.k < steps_of(b);
    if !after() && sizes.phase != GATES {
        if live {
            second(here, b, place.x);
            if two {
                second(here, b, place.y);
            }
        }
        return;
    }
    var summand = vec2<f32>(0.0);
    if live {
        let bias = biases_of(pair, n, phi);
        var whole = vec2<f32>(g[b * n + place.x] + ct[here * n + place.x], 0.0);
        var y = pair_of(factor(4u, here, place.x), 0.0);
        var into = pair_of((1.0 - factor(0u, here, place.x)) * whole.x, 0.0);
        if two {
            whole.y = g[b * n + place.y] + ct[here * n + place.y];
            y.b = number(factor(4u, here, place.y));
            into.b = number((1.0 - factor(0u, here, place.y)) * whole.y);
        }
        let pulled = pull(phi, y, into, bias);
        summand = pulled.along;
        finish(here, b, place.x, whole.x, pulled.bar.a);
        if two {
            finish(here, b, place.y, whole.y, pulled.bar.b);
        }
    } else {
        clear(here, b, place.x);
        if two {
            clear(here, b, place.y);
        }
    }
    if sizes.flag == 1u {
        let first = here * units(n, phi);
        along[first + unit.x] = summand.x;
        if two && unit.y != unit.x {
            along[first + unit.y] = summand.y;
        }
    }
}
