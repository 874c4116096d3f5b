// A step of a rotational unit, from its products with the state, one workgroup for each sequence:
//
//   u = sigma(u'),   k = phi(e + R h),   h <- k + u (h - k), or eta times its direction.
//
// Without a memory R is the rotation of e to tau, and one phase does it all. With one, FIRST writes the frame of the rotation, and
// SECOND takes R h from `heard`.

#import "numbers"
#import "activation"
#import "biases"
#import "cell"
#import "rum"
#import "frame"
#import "workgroups"

@group(0) @binding(1) var<storage, read> own: array<f32>;            // biases of modReLU
@group(0) @binding(2) var<storage, read> inputs: array<f32>;         // U x + b: u', tau, e, (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read> products: array<f32>;       // W h: u', tau, (batch, 2, n)
@group(0) @binding(4) var<storage, read> heard: array<f32>;          // R h, (batch, n)
@group(0) @binding(5) var<storage, read_write> state: array<f32>;    // h, (batch, n)
@group(0) @binding(6) var<storage, read_write> frames: array<f32>;   // (batch, pitch)
@group(0) @binding(7) var<storage, read_write> states: array<f32>;   // (steps, batch, n)

fn e_of(here: u32, j: u32) -> f32 {
    return inputs[(here * 3u + 2u) * sizes.n + j];
}

fn tau_of(here: u32, b: u32, j: u32) -> f32 {
    let n = sizes.n;
    return inputs[(here * 3u + 1u) * n + j] + products[(b * 2u + 1u) * n + j];
}

fn h_of(here: u32, b: u32, j: u32) -> f32 {
    return state[b * sizes.n + j];
}

fn argument(f: Frame, here: u32, b: u32, j: u32) -> f32 {
    let e = e_of(here, j);
    if sizes.phase == WHOLE {
        return e + turned(f, here, b, j);
    }
    return e + heard[b * sizes.n + j];
}

// Replaces h_j, and returns it.
fn blend(here: u32, b: u32, j: u32, k: f32) -> f32 {
    let n = sizes.n;
    let at = b * n + j;
    let u = sigma(inputs[here * 3u * n + j] + products[b * 2u * n + j]);
    let h = fma(u, state[at] - k, k);
    state[at] = h;
    return h;
}

fn work(b: u32, local: u32) {
    if b >= sizes.batch {
        return;
    }
    let n = sizes.n;
    let here = row(b, sizes.k);
    let live = sizes.k < steps_of(b);
    var f: Frame;
    if sizes.phase != SECOND {
        f = frame_of(local, here, b);
        storageBarrier();     // all have read h, which is in storage
    }
    if sizes.phase == FIRST {
        put_frame(local, f, here, b, b);
        return;
    }
    var largest = 0.0;
    for (var pair = local; live && pair < pairs(n); pair += LANES) {
        let place = places(pair, n, sizes.phi);
        let two = place.y < n;
        let bias = biases_of(pair, n, sizes.phi);
        var given = pair_of(argument(f, here, b, place.x), 0.0);
        if two {
            given.b = number(argument(f, here, b, place.y));
        }
        let k = value(sizes.phi, given, bias);
        largest = max(largest, abs(blend(here, b, place.x, real(k.a))));
        if two {
            largest = max(largest, abs(blend(here, b, place.y, real(k.b))));
        }
    }
    var scale = Scale(1.0, 1.0, false);
    if normalised() {
        largest = most(local, vec4<f32>(largest)).x;
        var square = 0.0;
        for (var pair = local; pair < pairs(n); pair += LANES) {
            let place = places(pair, n, sizes.phi);
            let x = quotient(state[b * n + place.x], max(largest, TINY));
            square += x * x;
            if place.y < n {
                let y = quotient(state[b * n + place.y], max(largest, TINY));
                square += y * y;
            }
        }
        scale = scale_of(largest, total(local, vec4<f32>(square)).x);
        scale.inverse *= select(eta(), 0.0, scale.zero);
    }
    for (var pair = local; pair < pairs(n); pair += LANES) {
        let place = places(pair, n, sizes.phi);
        finish(here, b, place.x, scale, live);
        if place.y < n {
            finish(here, b, place.y, scale, live);
        }
    }
}

fn finish(here: u32, b: u32, j: u32, scale: Scale, live: bool) {
    let n = sizes.n;
    var h = 0.0;
    if live {
        h = state[b * n + j];
        if normalised() {
            h = scaled(scale, h);
            state[b * n + j] = h;
        }
    }
    states[here * n + j] = h;
}
