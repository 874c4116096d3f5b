// Rows of width V laid out by chunks, times a factor and, for a choice of 1, times beta: (B, T each, HV, V) to (task, pitch, V), in which they
// begin at row `start`. There are m of each token if `by_rows`, else one.

#import "elements"
#import "delta"

override BY_ROWS: bool = true;

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> beta: array<f32>;         // (B, T m, HV)
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

fn element(at: u32) {
    let each = select(1u, sizes.m, BY_ROWS);
    let rows = sizes.tokens * each;
    let task = at / sizes.value / rows;
    let i = at / sizes.value % rows;
    let v = at % sizes.value;
    var found = 0.0;
    if lives(task, i / each) {
        var row = of_head(task, i);
        if BY_ROWS {
            row = row_of_head(task, i);
        }
        found = sizes.scale * x[row * sizes.value + v];
        if sizes.choice == 1u {
            found *= beta[row];
        }
    }
    out[(task * sizes.pitch + sizes.start + i) * sizes.value + v] = found;
}
