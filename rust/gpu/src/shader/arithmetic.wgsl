// What WGSL computes roughly, here alone: quotients off by 2.5 units in the last place, roots by 4.5, exp by 3 + 2 |x|. Tests compute the worst of it.

fn quotient(x: f32, y: f32) -> f32 {
    return x / y;
}

fn root(x: f32) -> f32 {
    return sqrt(x);
}

fn exponential(x: f32) -> f32 {
    return exp(x);
}

