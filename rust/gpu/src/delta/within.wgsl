// The pairs of a chunk, a row j and a later row or query, and the decay of a head between them.

@group(0) @binding(1) var<storage, read> g: array<f32>;   // (B, T, HV), where there is one for each head

struct Pair {
    task: u32,
    j: u32,
    i: u32,          // the row; of a query the last of its token
    query: bool,
    inside: bool,    // whether row j acts on it
}

// Of an element of an array (task, rows, rows and queries).
fn pair_at(at: u32) -> Pair {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    let column = at % all;
    var pair: Pair;
    pair.task = at / all / rows;
    pair.j = at / all % rows;
    pair.query = column >= rows;
    pair.i = select(column, (column - rows) * sizes.m + sizes.m - 1u, pair.query);
    pair.inside = pair.j < pair.i || (pair.query && pair.j == pair.i);
    return pair;
}

// e^(c_i - c_j), from the sum between them; 1 where each row of the state has its gate.
fn within(pair: Pair) -> f32 {
    if sizes.width != 1u {
        return 1.0;
    }
    var sum = 0.0;
    for (var t = pair.j / sizes.m + 1u; t <= pair.i / sizes.m; t++) {
        if lives(pair.task, t) {
            let x = g[of_head(pair.task, t)];
            sum += keep(x, max(x, -1000.0));
        }
    }
    return exponential(sum);
}
