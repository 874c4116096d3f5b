// The gradients of the products of keys with keys and queries, from those of A and P: X_ji <- X_ji D_ij where row j acts on i, else 0.

#import "numbers"
#import "elements"
#import "delta"
#import "within"

@group(0) @binding(2) var<storage, read_write> x: array<f32>;   // (task, rows, rows and queries)

fn element(at: u32) {
    let pair = pair_at(at);
    var found = 0.0;
    if pair.inside {
        found = x[at] * within(pair);
    }
    x[at] = found;
}
