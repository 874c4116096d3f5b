// A step of a gated unit, from its products with the state, for a pair of features of a sequence. Reset before: phase 0 computes the gates,
// phase 1, once W_h has been multiplied with r * h, the state. Reset after: one phase does it all.

#import "numbers"
#import "elements"
#import "activation"
#import "biases"
#import "cell"
#import "gated"

const GATES: u32 = 0;

@group(0) @binding(1) var<storage, read> own: array<f32>;           // biases of modReLU
@group(0) @binding(2) var<storage, read> inputs: array<f32>;        // U x + b, (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read> products: array<f32>;      // with W, (batch, 3, n)
@group(0) @binding(4) var<storage, read_write> state: array<f32>;   // h, (batch, n)
@group(0) @binding(5) var<storage, read_write> z: array<f32>;       // between the phases, (batch, n)
@group(0) @binding(6) var<storage, read_write> reset: array<f32>;   // r * h, (batch, n)
@group(0) @binding(7) var<storage, read_write> states: array<f32>;  // (steps, batch, n)

// The argument of gate `gate`.
fn argument(gate: u32, here: u32, b: u32, j: u32) -> f32 {
    let n = sizes.n;
    return inputs[(here * 3u + gate) * n + j] + products[(b * 3u + gate) * n + j];
}

fn candidate(here: u32, b: u32, j: u32) -> f32 {
    if !after() {
        return argument(2u, here, b, j);
    }
    let n = sizes.n;
    let r = sigma(argument(1u, here, b, j));
    return inputs[(here * 3u + 2u) * n + j] + r * products[(b * 3u + 2u) * n + j];
}

fn finish(here: u32, b: u32, j: u32, c: T) {
    let at = b * sizes.n + j;
    var gate: f32;
    if after() {
        gate = sigma(argument(0u, here, b, j));
    } else {
        gate = z[at];
    }
    let h = gate * state[at] + (1.0 - gate) * real(c);
    state[at] = h;
    states[here * sizes.n + j] = h;
}

fn open(here: u32, b: u32, j: u32) {
    let at = b * sizes.n + j;
    z[at] = sigma(argument(0u, here, b, j));
    reset[at] = sigma(argument(1u, here, b, j)) * state[at];
}

fn element(at: u32) {
    let n = sizes.n;
    let b = at / pairs(n);
    let pair = at % pairs(n);
    let place = places(pair, n, sizes.phi);
    let two = place.y < n;
    let here = row(b, sizes.k);
    if sizes.k >= steps_of(b) {
        states[here * n + place.x] = 0.0;
        if two {
            states[here * n + place.y] = 0.0;
        }
        return;
    }
    if !after() && sizes.phase == GATES {
        open(here, b, place.x);
        if two {
            open(here, b, place.y);
        }
        return;
    }
    let bias = biases_of(pair, n, sizes.phi);
    var given = pair_of(candidate(here, b, place.x), 0.0);
    if two {
        given.b = number(candidate(here, b, place.y));
    }
    let c = value(sizes.phi, given, bias);
    finish(here, b, place.x, c.a);
    if two {
        finish(here, b, place.y, c.b);
    }
}
