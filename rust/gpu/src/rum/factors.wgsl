// What a backward pass needs of all steps, a row of frames for each, one workgroup for each row. FIRST writes the frame; SECOND, once R h
// is known, the rest; without a memory, WHOLE writes all.

#import "numbers"
#import "activation"
#import "biases"
#import "cell"
#import "rum"
#import "frame"
#import "workgroups"

@group(0) @binding(1) var<storage, read> own: array<f32>;            // biases of modReLU
@group(0) @binding(2) var<storage, read> inputs: array<f32>;         // u', tau, e, (steps, batch, 3, n)
@group(0) @binding(3) var<storage, read> previous: array<f32>;       // h, (steps, batch, n)
@group(0) @binding(4) var<storage, read> heard: array<f32>;          // R h, (steps, batch, n)
@group(0) @binding(5) var<storage, read_write> frames: array<f32>;   // (steps, batch, pitch)

fn e_of(here: u32, j: u32) -> f32 {
    return inputs[(here * 3u + 2u) * sizes.n + j];
}

fn tau_of(here: u32, b: u32, j: u32) -> f32 {
    return inputs[(here * 3u + 1u) * sizes.n + j];
}

fn h_of(here: u32, b: u32, j: u32) -> f32 {
    return previous[here * sizes.n + j];
}

fn argument(f: Frame, here: u32, j: u32) -> f32 {
    let e = e_of(here, j);
    if sizes.phase == WHOLE {
        return e + turned(f, here, 0u, j);
    }
    return e + heard[here * sizes.n + j];
}

// Returns h'_j.
fn blend(here: u32, j: u32, k: f32, y: f32) -> f32 {
    let n = sizes.n;
    let u = sigma(inputs[here * 3u * n + j]);
    let difference = previous[here * n + j] - k;
    frames[place_of(U, here, j)] = u;
    frames[place_of(F_U, here, j)] = difference * u * (1.0 - u);
    frames[place_of(Y, here, j)] = y;
    let h = fma(u, difference, k);
    if normalised() {
        frames[place_of(DIRECTION, here, j)] = h;
    }
    return h;
}

fn work(here: u32, local: u32) {
    if here >= sizes.count {
        return;
    }
    let n = sizes.n;
    var f: Frame;
    if sizes.phase != SECOND {
        f = frame_of(local, here, 0u);
        put_frame(local, f, here, 0u, here);
    }
    if sizes.phase == FIRST {
        return;
    }
    var largest = 0.0;
    for (var pair = local; pair < pairs(n); pair += LANES) {
        let place = places(pair, n, sizes.phi);
        let two = place.y < n;
        let bias = biases_of(pair, n, sizes.phi);
        var given = pair_of(argument(f, here, place.x), 0.0);
        if two {
            given.b = number(argument(f, here, place.y));
        }
        let k = value(sizes.phi, given, bias);
        var y = given;
        if readable(sizes.phi) {
            y = k;
        }
        largest = max(largest, abs(blend(here, place.x, real(k.a), real(y.a))));
        if two {
            largest = max(largest, abs(blend(here, place.y, real(k.b), real(y.b))));
        }
    }
    if !normalised() {
        return;
    }
    largest = most(local, vec4<f32>(largest)).x;
    var square = 0.0;
    for (var pair = local; pair < pairs(n); pair += LANES) {
        let place = places(pair, n, sizes.phi);
        let x = quotient(frames[place_of(DIRECTION, here, place.x)], max(largest, TINY));
        square += x * x;
        if place.y < n {
            let y = quotient(frames[place_of(DIRECTION, here, place.y)], max(largest, TINY));
            square += y * y;
        }
    }
    let scale = scale_of(largest, total(local, vec4<f32>(square)).x);
    for (var pair = local; pair < pairs(n); pair += LANES) {
        let place = places(pair, n, sizes.phi);
        let x = place_of(DIRECTION, here, place.x);
        frames[x] = scaled(scale, frames[x]);
        if place.y < n {
            let y = place_of(DIRECTION, here, place.y);
            frames[y] = scaled(scale, frames[y]);
        }
    }
    if local == 0u {
        frames[here * sizes.pitch + FACTOR] = select(quotient(eta() * scale.inverse, scale.by), 0.0, scale.zero);
    }
}
