// A step of a rotational unit backward, from the cotangent g of its state, one workgroup for each sequence; primes are cotangents of the
// arguments of sigma and phi, y = h' / ||h'||:
//
//   g <- (eta / ||h'||) (g - y (y.g)) where states are normalised,
//   k' = phi'^H ((1 - u) g),    u' = f_u g,    g <- u g + R^T k',    e' = k' + the gradient of e,    tau',
//
// to which the caller adds the products of (u', tau') with W. The gradients of e and tau, with the sums s and t of the rotation's rows,
//
//   v_bar = t / ||v||,   e_bar = (I - a a^T) (s + v_bar) / ||e||,   tau_bar = (I - b b^T) v_bar / ||tau||,   b = ||v|| w - a = tau / ||tau||.
//
// Without a memory the only row is h, and one phase does it all. With one, FIRST ends with k', and SECOND takes the sums from `given`.

#import "numbers"
#import "activation"
#import "biases"
#import "cell"
#import "rum"
#import "workgroups"

@group(0) @binding(1) var<storage, read> own: array<f32>;            // biases of modReLU
@group(0) @binding(2) var<storage, read> given: array<f32>;          // cotangents, (steps, batch, n); SECOND: (batch, count, 3, n)
@group(0) @binding(3) var<storage, read> frames: array<f32>;         // (steps, batch, pitch)
@group(0) @binding(4) var<storage, read_write> g: array<f32>;        // (batch, n)
@group(0) @binding(5) var<storage, read_write> bars: array<f32>;     // u', tau', e', (steps, batch, 3, n)
@group(0) @binding(6) var<storage, read_write> now: array<f32>;      // u', tau', k', of this step, (batch, 3, n)
@group(0) @binding(7) var<storage, read_write> along: array<f32>;    // summands of the gradient of phi's bias, (steps, batch, biases)

// A step of a sequence.
struct Turn {
    b: u32,
    here: u32,
    first: u32,      // of its row of frames
    alpha: f32,      // of the only row
    beta: f32,
    gamma: f32,
    delta: f32,
}

fn put(gate: u32, turn: Turn, j: u32, x: f32) {
    bars[(turn.here * 3u + gate) * sizes.n + j] = x;
    now[(turn.b * 3u + gate) * sizes.n + j] = x;
}

fn turn_bar(turn: Turn, j: u32) -> f32 {
    return now[(turn.b * 3u + 2u) * sizes.n + j];
}

// s, t and R^T k' at j.
fn sums_of(turn: Turn, j: u32) -> vec3<f32> {
    let n = sizes.n;
    if sizes.phase == SECOND {
        var sums = vec3<f32>(0.0);
        for (var block = 0u; block < sizes.count; block++) {
            let at = (turn.b * sizes.count + block) * 3u * n + j;
            sums += vec3<f32>(given[at], given[at + n], given[at + 2u * n]);
        }
        return sums;
    }
    let a = frames[place_of(A, turn.here, j)];
    let w = frames[place_of(W, turn.here, j)];
    let x = frames[place_of(H, turn.here, j)];
    let k = turn_bar(turn, j);
    let of_w = turn.delta * w - k;
    let of_a = turn.alpha * a - x;
    let s = turn.alpha * of_w + turn.beta * of_a;
    let t = turn.gamma * of_w + turn.delta * of_a;
    return vec3<f32>(s, t, fma(-turn.beta, a, fma(-turn.delta, w, k)));
}

// a.(s + v_bar), a.v_bar and w.v_bar at j.
fn products_of(turn: Turn, j: u32) -> vec4<f32> {
    let sums = sums_of(turn, j);
    let a = frames[place_of(A, turn.here, j)];
    let bar = sums.y * frames[turn.first + SLOPE];
    return vec4<f32>(a * (sums.x + bar), a * bar, frames[place_of(W, turn.here, j)] * bar, 0.0);
}

// x.Ju, J = [[0, -1], [1, 0]]
fn across(u: vec2<f32>, x: vec2<f32>) -> f32 {
    return u.x * x.y - u.y * x.x;
}

// The gradients of e and tau in the plane, where the angle of w is the mean of those of a and b: ||v|| drops out.
fn plane(turn: Turn, j: u32) -> vec2<f32> {
    let one = sums_of(turn, 0u);
    let two = sums_of(turn, 1u);
    let a = vec2<f32>(frames[place_of(A, turn.here, 0u)], frames[place_of(A, turn.here, 1u)]);
    let w = vec2<f32>(frames[place_of(W, turn.here, 0u)], frames[place_of(W, turn.here, 1u)]);
    let b = 2.0 * frames[turn.first + OVERLAP] * w - a;
    let half = across(w, vec2<f32>(one.y, two.y)) * 0.5;
    let of_e = frames[turn.first + OF_E] * (across(a, vec2<f32>(one.x, two.x)) + half);
    let of_tau = frames[turn.first + OF_TAU] * half;
    if j == 0u {
        return vec2<f32>(-of_e * a.y, -of_tau * b.y);
    }
    return vec2<f32>(of_e * a.x, of_tau * b.x);
}

fn finish(turn: Turn, j: u32, products: vec4<f32>) {
    let n = sizes.n;
    let sums = sums_of(turn, j);
    let slope = frames[turn.first + SLOPE];
    var found = vec2<f32>(0.0);
    let turns = is_nan(slope) || slope > 0.0;
    if turns && n == 2u {
        found = plane(turn, j);
    } else if turns {
        let a = frames[place_of(A, turn.here, j)];
        let bar = sums.y * slope;
        found.x = frames[turn.first + OF_E] * (sums.x + bar - products.x * a);
        let along = quotient(products.z, slope) - products.y;
        let b = quotient(frames[place_of(W, turn.here, j)], slope) - a;
        found.y = frames[turn.first + OF_TAU] * (bar - along * b);
    }
    g[turn.b * n + j] += sums.z;
    put(1u, turn, j, found.y);
    bars[(turn.here * 3u + 2u) * n + j] = turn_bar(turn, j) + found.x;
}

fn whole(turn: Turn, j: u32) -> f32 {
    return g[turn.b * sizes.n + j] + given[turn.here * sizes.n + j];
}

// u' of the cotangent of h', and what is left of that.
fn open(turn: Turn, j: u32, bar: f32, k: f32) -> vec4<f32> {
    put(0u, turn, j, frames[place_of(F_U, turn.here, j)] * bar);
    put(2u, turn, j, k);
    g[turn.b * sizes.n + j] = frames[place_of(U, turn.here, j)] * bar;
    return k * vec4<f32>(frames[place_of(A, turn.here, j)], frames[place_of(W, turn.here, j)], 0.0, 0.0);
}

fn clear(turn: Turn, j: u32) {
    for (var gate = 0u; gate < 3u; gate++) {
        put(gate, turn, j, 0.0);
    }
}

fn work(b: u32, local: u32) {
    if b >= sizes.batch {
        return;
    }
    let n = sizes.n;
    let phi = sizes.phi;
    let here = row(b, sizes.k);
    let live = sizes.k < steps_of(b);
    let first = here * sizes.pitch;
    var turn = Turn(b, here, first, 0.0, 0.0, 0.0, 0.0);
    if sizes.phase != SECOND {
        var radial = 0.0;
        if normalised() {
            for (var pair = local; live && pair < pairs(n); pair += LANES) {
                let place = places(pair, n, phi);
                radial += frames[place_of(DIRECTION, here, place.x)] * whole(turn, place.x);
                if place.y < n {
                    radial += frames[place_of(DIRECTION, here, place.y)] * whole(turn, place.y);
                }
            }
            radial = total(local, vec4<f32>(radial)).x;
        }
        var dots = vec4<f32>(0.0);
        for (var pair = local; pair < pairs(n); pair += LANES) {
            let place = places(pair, n, phi);
            let unit = unit_places(pair, n, phi);
            let second = min(place.y, n - 1u);
            let two = place.y < n;
            var summand = vec2<f32>(0.0);
            if live {
                let bias = biases_of(pair, n, phi);
                var bar = vec2<f32>(whole(turn, place.x), whole(turn, second));
                if normalised() {
                    let x = frames[place_of(DIRECTION, here, place.x)];
                    let y = frames[place_of(DIRECTION, here, second)];
                    bar = frames[first + FACTOR] * (bar - radial * vec2<f32>(x, y));
                }
                let u = vec2<f32>(frames[place_of(U, here, place.x)], frames[place_of(U, here, second)]);
                let into = (1.0 - u) * bar;
                let y = pair_of(frames[place_of(Y, here, place.x)], select(0.0, frames[place_of(Y, here, second)], two));
                let pulled = pull(phi, y, pair_of(into.x, select(0.0, into.y, two)), bias);
                summand = pulled.along;
                dots += open(turn, place.x, bar.x, real(pulled.bar.a));
                if two {
                    dots += open(turn, place.y, bar.y, real(pulled.bar.b));
                }
            } else {
                clear(turn, place.x);
                clear(turn, second);
            }
            if sizes.flag == 1u {
                let of_row = here * units(n, phi);
                along[of_row + unit.x] = summand.x;
                if two && unit.y != unit.x {
                    along[of_row + unit.y] = summand.y;
                }
            }
        }
        if sizes.phase == FIRST {
            return;
        }
        dots = total(local, dots);
        let overlap = frames[first + OVERLAP];
        turn.alpha = 2.0 * frames[first + A_H];
        turn.delta = 2.0 * dots.y;
        turn.gamma = 2.0 * (frames[first + W_H] - turn.alpha * overlap);
        turn.beta = 2.0 * (dots.x - turn.delta * overlap);
    }
    var products = vec4<f32>(0.0);
    for (var pair = local; live && pair < pairs(n); pair += LANES) {
        let place = places(pair, n, phi);
        products += products_of(turn, place.x);
        if place.y < n {
            products += products_of(turn, place.y);
        }
    }
    products = total(local, products);
    for (var pair = local; live && pair < pairs(n); pair += LANES) {
        let place = places(pair, n, phi);
        finish(turn, place.x, products);
        if place.y < n {
            finish(turn, place.y, products);
        }
    }
}
