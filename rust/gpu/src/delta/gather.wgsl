// Outputs, (task, tokens, V), times scale, in the order of the call.

#import "elements"
#import "delta"

@group(0) @binding(1) var<storage, read> x: array<f32>;           // (task, tokens, V)
@group(0) @binding(2) var<storage, read_write> o: array<f32>;     // (B, T, HV, V)

fn element(at: u32) {
    let task = at / sizes.value / sizes.tokens;
    let t = at / sizes.value % sizes.tokens;
    if lives(task, t) {
        o[of_head(task, t) * sizes.value + at % sizes.value] = sizes.scale * x[at];
    }
}
