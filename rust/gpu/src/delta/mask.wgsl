// The triangles of a chunk from the products of keys with keys and queries, G_ji = k_j . k_i: with D_ij = e^(c_i - c_j),
//
//   G_ji <- G_ji D_ij for j < i, and for the query of row i, j <= i; else 0,
//
// and the triangle that is inverted, T + T^T = S of triangle.wgsl with T = (I + A)^T: beta_i G_ji above the diagonal, 2 on it.

#import "numbers"
#import "elements"
#import "delta"
#import "within"

@group(0) @binding(2) var<storage, read> beta: array<f32>;             // (B, T m, HV)
@group(0) @binding(3) var<storage, read_write> gram: array<f32>;       // (task, rows, rows and queries)
@group(0) @binding(4) var<storage, read_write> upper: array<f32>;      // (task, rows, rows)

fn element(at: u32) {
    let rows = rows_of_chunk();
    let pair = pair_at(at);
    var found = 0.0;
    if pair.inside {
        found = gram[at] * within(pair);
    }
    gram[at] = found;
    if pair.query {
        return;
    }
    var x = 0.0;
    if pair.inside && lives(pair.task, pair.i / sizes.m) {
        x = beta[row_of_head(pair.task, pair.i)] * found;
    }
    if pair.i == pair.j {
        x = 2.0;
    }
    upper[(pair.task * rows + pair.j) * rows + pair.i] = x;
}
