// The frame of the rotation of e to tau, and its products with h; the shader says what e, tau and h are.

const EPS: f32 = 1.1920929e-7;

// Forms of w.
const NONE: u32 = 0;        // 0, as is a: e or tau is zero, or n = 1
const USUAL: u32 = 1;       // v / ||v||
const OPPOSITE: u32 = 2;    // opposite directions: the normalised part orthogonal to a of the axis where |a_k| is smallest
const PLANE: u32 = 3;       // n = 2 and v cancels: J (b - a) normalised, b = tau / ||tau||

struct Frame {
    e: Scale,
    tau: Scale,
    form: u32,
    axis: u32,
    of_axis: f32,   // a_k of the axis
    by: f32,        // of which w is a multiple
    slope: f32,
    overlap: f32,
    a_h: f32,
    w_h: f32,
}

fn a_of(f: Frame, here: u32, b: u32, j: u32) -> f32 {
    if f.form == NONE {
        return 0.0;
    }
    return scaled(f.e, e_of(here, j));
}

fn w_of(f: Frame, here: u32, b: u32, j: u32) -> f32 {
    let a = scaled(f.e, e_of(here, j));
    switch f.form {
        case USUAL: {
            return (a + scaled(f.tau, tau_of(here, b, j))) * f.by;
        }
        case OPPOSITE: {
            return (select(0.0, 1.0, j == f.axis) - f.of_axis * a) * f.by;
        }
        case PLANE: {
            let other = 1u - j;
            let across = scaled(f.e, e_of(here, other)) - scaled(f.tau, tau_of(here, b, other));
            return select(-across, across, j == 0u) * f.by;
        }
        default: {
            return 0.0;
        }
    }
}

fn frame_of(local: u32, here: u32, b: u32) -> Frame {
    let n = sizes.n;
    var largest = vec4<f32>(0.0);
    for (var j = local; j < n; j += LANES) {
        largest = max(largest, vec4<f32>(abs(e_of(here, j)), abs(tau_of(here, b, j)), 0.0, 0.0));
    }
    largest = most(local, largest);
    let by = max(largest.xy, vec2<f32>(TINY));
    var squares = vec4<f32>(0.0);
    for (var j = local; j < n; j += LANES) {
        let x = vec2<f32>(quotient(e_of(here, j), by.x), quotient(tau_of(here, b, j), by.y));
        squares += vec4<f32>(x * x, 0.0, 0.0);
    }
    squares = total(local, squares);
    var f: Frame;
    f.e = scale_of(largest.x, squares.x);
    f.tau = scale_of(largest.y, squares.y);
    var sums = vec4<f32>(0.0);
    for (var j = local; j < n; j += LANES) {
        let a = scaled(f.e, e_of(here, j));
        let v = a + scaled(f.tau, tau_of(here, b, j));
        let h = h_of(here, b, j);
        sums += vec4<f32>(v * v, v * a, v * h, a * h);
    }
    sums = total(local, sums);
    if f.e.zero || f.tau.zero || n == 1u {
        return f;
    }
    f.a_h = sums.w;
    let length = root(sums.x);
    if length <= 8.0 * EPS {
        f.form = OPPOSITE;
        var least = abs(scaled(f.e, e_of(here, 0u)));
        for (var j = 1u; j < n; j++) {
            let size = abs(scaled(f.e, e_of(here, j)));
            if size < least {
                least = size;
                f.axis = j;
            }
        }
        f.of_axis = scaled(f.e, e_of(here, f.axis));
        f.by = quotient(1.0, root(1.0 - f.of_axis * f.of_axis));
        f.w_h = (h_of(here, b, f.axis) - f.of_axis * f.a_h) * f.by;
        return f;
    }
    f.slope = quotient(1.0, length);
    if n == 2u && sums.x < 2.0 {
        f.form = PLANE;
        f.by = 1.0;
        let across = vec2<f32>(w_of(f, here, b, 0u), w_of(f, here, b, 1u));
        f.by = quotient(1.0, root(dot(across, across)));
        let a = vec2<f32>(a_of(f, here, b, 0u), a_of(f, here, b, 1u));
        f.overlap = dot(a, across) * f.by;
        f.w_h = dot(vec2<f32>(h_of(here, b, 0u), h_of(here, b, 1u)), across) * f.by;
        return f;
    }
    f.form = USUAL;
    f.by = f.slope;
    f.overlap = sums.y * f.slope;
    f.w_h = sums.z * f.slope;
    return f;
}

// H(w) H(a) h
fn turned(f: Frame, here: u32, b: u32, j: u32) -> f32 {
    let first = 2.0 * f.a_h;
    let second = 2.0 * (f.w_h - first * f.overlap);
    let once = fma(-first, a_of(f, here, b, j), h_of(here, b, j));
    return fma(-second, w_of(f, here, b, j), once);
}

// Writes a frame, as row `to` of frames.
fn put_frame(local: u32, f: Frame, here: u32, b: u32, to: u32) {
    for (var j = local; j < sizes.n; j += LANES) {
        frames[place_of(A, to, j)] = a_of(f, here, b, j);
        frames[place_of(W, to, j)] = w_of(f, here, b, j);
        frames[place_of(H, to, j)] = h_of(here, b, j);
    }
    if local == 0u {
        let first = to * sizes.pitch;
        frames[first + OVERLAP] = f.overlap;
        frames[first + SLOPE] = f.slope;
        frames[first + OF_E] = quotient(f.e.inverse, f.e.by);
        frames[first + OF_TAU] = quotient(f.tau.inverse, f.tau.by);
        frames[first + A_H] = f.a_h;
        frames[first + W_H] = f.w_h;
    }
}
