// The states before all steps, rows of `pitch` numbers: 0 past the ends of sequences.

#import "numbers"
#import "elements"
#import "activation"
#import "cell"

@group(0) @binding(1) var<storage, read> states: array<f32>;           // (steps, batch, pitch)
@group(0) @binding(2) var<storage, read> start: array<f32>;            // h0, (batch, pitch)
@group(0) @binding(3) var<storage, read_write> previous: array<f32>;   // (steps, batch, pitch)

fn element(at: u32) {
    let n = sizes.pitch;
    let b = at / n % sizes.batch;
    let t = at / n / sizes.batch;
    var found = 0.0;
    if t < steps_of(b) {
        let k = step_at(b, t);
        if k > 0u {
            found = states[row(b, k - 1u) * n + at % n];
        } else if sizes.flag == 1u {
            found = start[b * n + at % n];
        }
    }
    previous[at] = found;
}
