// What a backward pass needs of all steps, for a pair of features of a row: (z, f_z, r, f_r, y) in `factors`, with y the number from which
// phi' is read, and
//
//   f_z = (h - c) z (1 - z),    f_r = q r (1 - r),  q = W_h h + c_h (reset after) or h (before);  h the state before the step.
//
// Reset before: phase 0 leaves out y and f_z, which phase 1 adds once the argument of c is complete, and writes r * h.

#import "numbers"
#import "elements"
#import "activation"
#import "biases"
#import "cell"
#import "gated"

const GATES: u32 = 0;

@group(0) @binding(1) var<storage, read> own: array<f32>;             // biases of modReLU
@group(0) @binding(2) var<storage, read> inputs: array<f32>;          // the arguments of z, r and c, (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read> products: array<f32>;        // reset after: W_h h + c_h, (steps, batch, n)
@group(0) @binding(4) var<storage, read> previous: array<f32>;        // h, (steps, batch, n)
@group(0) @binding(5) var<storage, read_write> factors: array<f32>;   // (steps, batch, 5, n)
@group(0) @binding(6) var<storage, read_write> reset: array<f32>;     // r * h, (steps, batch, n)

fn gates(here: u32, j: u32) {
    let n = sizes.n;
    let r = sigma(inputs[(here * 3u + 1u) * n + j]);
    let h = previous[here * n + j];
    factors[here * 5u * n + j] = sigma(inputs[here * 3u * n + j]);
    factors[(here * 5u + 2u) * n + j] = r;
    var seen = h;
    if after() {
        seen = products[here * n + j];
    } else {
        reset[here * n + j] = r * h;
    }
    factors[(here * 5u + 3u) * n + j] = seen * r * (1.0 - r);
}

fn candidate(here: u32, j: u32) -> f32 {
    let n = sizes.n;
    let argument = inputs[(here * 3u + 2u) * n + j];
    if after() {
        return argument + factors[(here * 5u + 2u) * n + j] * products[here * n + j];
    }
    return argument;
}

fn finish(here: u32, j: u32, c: T, y: T) {
    let n = sizes.n;
    let z = factors[here * 5u * n + j];
    factors[(here * 5u + 1u) * n + j] = (previous[here * n + j] - real(c)) * z * (1.0 - z);
    factors[(here * 5u + 4u) * n + j] = real(y);
}

fn element(at: u32) {
    let n = sizes.n;
    let here = at / pairs(n);
    let pair = at % pairs(n);
    let place = places(pair, n, sizes.phi);
    let two = place.y < n;
    if after() || sizes.phase == GATES {
        gates(here, place.x);
        if two {
            gates(here, place.y);
        }
        if !after() {
            return;
        }
    }
    let bias = biases_of(pair, n, sizes.phi);
    var given = pair_of(candidate(here, place.x), 0.0);
    if two {
        given.b = number(candidate(here, place.y));
    }
    let c = value(sizes.phi, given, bias);
    var y = given;
    if readable(sizes.phi) {
        y = c;
    }
    finish(here, place.x, c.a, y.a);
    if two {
        finish(here, place.y, c.b, y.b);
    }
}
